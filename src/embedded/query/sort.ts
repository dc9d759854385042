import type { StringOrder } from '../bson/compare';
import { compareValues } from '../bson/compare';
import { entriesOf } from '../bson/field-order';
import type { Document, Value } from '../bson/values';
import { at, field, isNumeric, toNumber } from '../bson/values';
import { badValue } from '../errors';
import { KeyExtractor } from '../storage/index-keys';

interface SortPart {
  readonly direction: number;
  readonly valueOf: (document: Document) => Value;
}

function partOf(path: string, how: Value): SortPart {
  const direction = isNumeric(how) ? toNumber(how) : 0;
  if (direction !== 1 && direction !== -1)
    throw badValue(`$sort key ordering must be 1 (for ascending) or -1 (for descending)`);
  const extractor = new KeyExtractor([path]);
  const dotted = path.includes('.');
  return {
    direction,
    // An array sorts by its smallest value going up, and by its greatest going down.
    valueOf: (document) => {
      if (!dotted) {
        const value = field(document, path);
        if (!Array.isArray(value)) return value ?? null;
      }
      return extractor
        .extract(document)
        .keys.map((key) => key[0])
        .reduce((best, value) => (compareValues(value, best) * direction < 0 ? value : best));
    },
  };
}

interface Keyed<T> {
  readonly item: T;
  readonly key: readonly Value[];
}

/** Puts items in the order that a sort specification asks for; equal ones stay in the order they came. */
export class Sorter {
  readonly #parts: readonly SortPart[];
  readonly #strings: StringOrder | undefined;

  /** @throws CommandError when it isn't one */
  constructor(specification: Document, strings?: StringOrder) {
    this.#parts = entriesOf(specification).map(([path, how]) => partOf(path, how));
    this.#strings = strings;
  }

  /** @param limit how many of the first are wanted; 0 for all */
  sort<T>(items: Iterable<T>, documentOf: (item: T) => Document, limit = 0): T[] {
    const keyed: Keyed<T>[] = [];
    for (const item of items) {
      const document = documentOf(item);
      const entry = { item, key: this.#parts.map(({ valueOf }) => valueOf(document)) };
      keyed.push(entry);
      // Keeping twice what is wanted, and cutting it down now and then, spares the memory for the rest.
      if (limit > 0 && keyed.length >= 2 * limit + 1000) this.#cut(keyed, limit);
    }
    keyed.sort((a, b) => this.#compare(a, b));
    return (limit > 0 ? keyed.slice(0, limit) : keyed).map(({ item }) => item);
  }

  #cut(keyed: Keyed<unknown>[], limit: number): void {
    keyed.sort((a, b) => this.#compare(a, b));
    keyed.length = limit;
  }

  #compare(a: Keyed<unknown>, b: Keyed<unknown>): number {
    for (let i = 0; i < this.#parts.length; i++) {
      const order = compareValues(a.key[i], b.key[i], this.#strings);
      if (order !== 0) return order * at(this.#parts, i).direction;
    }
    return 0;
  }
}
