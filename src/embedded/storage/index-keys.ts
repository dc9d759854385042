import { keyOf } from '../bson/compare';
import type { Value } from '../bson/values';
import { at, field, isDocument } from '../bson/values';
import type { Document } from '../bson/values';
import { CommandError } from '../errors';
import type { IndexKey } from './ordered-index';

/** How far a path has been followed: what is there, and the part of the path that is left. */
interface Progress {
  readonly value: Value;
  readonly parts: readonly string[];
  readonly from: number;
  /** The path ended inside an array's element; an array there is not expanded again. */
  readonly ended: boolean;
}

const isPosition = (part: string | undefined): boolean => part !== undefined && /^(0|[1-9]\d*)$/.test(part);

function follow(progress: Progress): Progress {
  let { value, from } = progress;
  const { parts, ended } = progress;
  while (from < parts.length) {
    const part = at(parts, from);
    if (Array.isArray(value)) {
      if (!isPosition(part)) break;
      value = value[Number(part)];
    } else if (isDocument(value)) {
      value = field(value, part);
    } else {
      value = undefined;
      from = parts.length;
      break;
    }
    from++;
  }
  return { value, parts, from, ended };
}

const expands = ({ value, from, parts, ended }: Progress): boolean =>
  Array.isArray(value) && (from < parts.length || !ended);

function expand(fields: readonly Progress[], keys: Value[][]): void {
  const reached = fields.map(follow);
  const arrays = new Set(reached.filter(expands).map(({ value }) => value));
  if (arrays.size === 0) {
    keys.push(reached.map(({ value }) => value ?? null));
    return;
  }
  if (arrays.size > 1) {
    throw new CommandError(171, 'cannot index parallel arrays');
  }
  const [array] = arrays as Set<Value[]>;
  if (!array) return;
  if (array.length === 0) {
    // An empty array that ends a path is indexed as missing, which sorts before null and so is told apart from it.
    keys.push(
      reached.map((each) =>
        expands(each) ? (each.from < each.parts.length ? null : undefined) : (each.value ?? null),
      ),
    );
    return;
  }
  for (const element of array) {
    expand(
      reached.map((each) => {
        if (!expands(each)) return { ...each, ended: true };
        if (each.from === each.parts.length) return { ...each, value: element, ended: true };
        // An array right inside an array is not searched for the rest of the path.
        return { ...each, value: isDocument(element) ? element : null };
      }),
      keys,
    );
  }
}

export interface ExtractedKeys {
  readonly keys: readonly IndexKey[];
  /** An array was met on the way: one document may stand under several keys. */
  readonly multikey: boolean;
}

/** Makes the keys under which an index holds a document: several when a path meets an array. */
export class KeyExtractor {
  readonly #paths: readonly (readonly string[])[];

  constructor(paths: readonly string[]) {
    this.#paths = paths.map((path) => path.split('.'));
  }

  /** @throws CommandError when two paths meet different arrays */
  extract(document: Document): ExtractedKeys {
    const key = this.#simpleKey(document);
    if (key) return { keys: [key], multikey: false };
    const keys: Value[][] = [];
    expand(
      this.#paths.map((parts) => ({ value: document, parts, from: 0, ended: false })),
      keys,
    );
    const distinct = new Map(keys.map((each) => [keyOf(each), each]));
    return { keys: [...distinct.values()], multikey: true };
  }

  hasAnyField(document: Document): boolean {
    return this.#paths.some((parts) => {
      let value: Value = document;
      for (const part of parts) {
        if (Array.isArray(value)) return true;
        value = isDocument(value) ? field(value, part) : undefined;
      }
      return value !== undefined;
    });
  }

  /** The key of a document that has no array on any of the paths, as nearly all have. */
  #simpleKey(document: Document): IndexKey | undefined {
    // Made at its size: an array that grows keeps room for more, which a million keys would pay for.
    const key = new Array<Value>(this.#paths.length);
    for (let i = 0; i < key.length; i++) {
      let value: Value = document;
      for (const part of this.#paths[i] ?? []) {
        if (Array.isArray(value)) return undefined;
        value = isDocument(value) ? field(value, part) : undefined;
      }
      if (Array.isArray(value)) return undefined;
      key[i] = value ?? null;
    }
    return key;
  }
}
