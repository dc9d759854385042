import { putField } from '../bson/field-order';
import type { Document, Value } from '../bson/values';
import { at, field, isDocument, setField } from '../bson/values';
import { badValue, CommandError } from '../errors';
import type { Predicate } from '../query/path';
import { formatValue } from '../storage/format-value';

/** How the parts of a path that stand for array elements are found. */
export interface ElementChoice {
  /** The element that the filter matched, for `$`. */
  readonly matched: (path: string, array: readonly Value[]) => number | undefined;
  /** The tests of `arrayFilters` by name. */
  readonly named: ReadonlyMap<string, Predicate>;
}

const MISSING_ARRAY = (path: string): CommandError =>
  badValue(`The path '${path}' must exist in the document in order to apply array updates.`);

/** The paths without `$`, `$[]` and `$[name]` that a path means in a document. */
export function concretePaths(document: Document, path: string, choice: ElementChoice): string[][] {
  if (!path.includes('$')) return [path.split('.')];
  const found: string[][] = [];
  const visit = (value: Value, before: readonly string[], rest: readonly string[]): void => {
    const [part, ...after] = rest;
    if (part === undefined) {
      found.push([...before]);
      return;
    }
    const step = (name: string, each: Value): void => visit(each, [...before, name], after);
    if (!part.startsWith('$')) {
      step(
        part,
        Array.isArray(value) ? value[Number(part)] : isDocument(value) ? field(value, part) : undefined,
      );
      return;
    }
    const here = before.join('.');
    if (part === '$') {
      const position = Array.isArray(value) ? choice.matched(here, value) : undefined;
      if (position === undefined) {
        throw badValue('The positional operator did not find the match needed from the query.');
      }
      step(String(position), (value as Value[])[position]);
      return;
    }
    if (value === undefined) throw MISSING_ARRAY(here);
    if (!Array.isArray(value)) {
      throw badValue(
        `Cannot apply array updates to non-array element ${before.at(-1) ?? ''}: ${formatValue(value)}`,
      );
    }
    const test = part === '$[]' ? () => true : choice.named.get(part.slice(2, -1));
    if (!test)
      throw badValue(`No array filter found for identifier '${part.slice(2, -1)}' in path '${path}'`);
    value.forEach((each, i) => {
      if (test(each)) step(String(i), each);
    });
  };
  visit(document, [], path.split('.'));
  return found;
}

export type Change = (value: Value) => Value;

function createPath(parts: readonly string[], from: number, change: Change): Value {
  if (from === parts.length) return change(undefined);
  const value = createPath(parts, from + 1, change);
  if (value === undefined) return undefined;
  const made: Document = {};
  setField(made, at(parts, from), value);
  return made;
}

function changeArray(
  array: readonly Value[],
  parts: readonly string[],
  from: number,
  change: Change,
  creates: boolean,
): Value {
  const part = at(parts, from);
  if (!/^(0|[1-9]\d*)$/.test(part)) {
    if (!creates) return array as Value[];
    throw new CommandError(
      28,
      `Cannot create field '${part}' in element {${parts[from - 1] ?? ''}: ${formatValue(array as Value[])}}`,
    );
  }
  const position = Number(part);
  if (position >= array.length && !creates) return array as Value[];
  if (position > array.length + 1_500_000) {
    throw badValue(`can't backfill more than 1500000 elements`);
  }
  const before = array[position];
  const after = changeAt(before, parts, from + 1, change, creates);
  if (after === before) return array as Value[];
  const copy = [...array];
  while (copy.length < position) copy.push(null);
  // Taking an element away leaves its place: the positions of the others mean something.
  copy[position] = after ?? null;
  return copy;
}

function changeAt(
  value: Value,
  parts: readonly string[],
  from: number,
  change: Change,
  creates: boolean,
): Value {
  if (from === parts.length) return change(value);
  if (value === undefined) return creates ? createPath(parts, from, change) : undefined;
  if (Array.isArray(value)) return changeArray(value, parts, from, change, creates);
  const part = at(parts, from);
  if (!isDocument(value)) {
    if (!creates) return value;
    throw new CommandError(
      28,
      `Cannot create field '${part}' in element {${parts[from - 1] ?? ''}: ${formatValue(value)}}`,
    );
  }
  const before = field(value, part);
  const after = changeAt(before, parts, from + 1, change, creates);
  if (after === before) return value;
  const copy = { ...value };
  if (after === undefined) Reflect.deleteProperty(copy, part);
  else putField(copy, part, after);
  return copy;
}

/**
 * A copy of the document with the value at a path changed; all that isn't on the path is shared with the original, and
 * the original itself comes back when the change gives back the same value. Undefined takes the field away.
 * @param creates whether missing fields on the way are made
 */
export function withChange(
  document: Document,
  parts: readonly string[],
  change: Change,
  creates: boolean,
): Document {
  return changeAt(document, parts, 0, change, creates) as Document;
}

export function requireValidPath(path: string): void {
  if (path === '') throw new CommandError(56, 'An empty update path is not valid.');
  if (path.split('.').includes('')) {
    throw new CommandError(
      56,
      `The update path '${path}' contains an empty field name, which is not allowed.`,
    );
  }
}
