import type { Document, Value } from '../bson/values';
import { at, field, isDocument } from '../bson/values';

export type Predicate = (value: Value) => boolean;

/** Whether an array that a path ends at stands for its elements too, or for itself alone. */
export type LeafArrays = 'expand' | 'whole';

function testLeaf(value: Value, leaf: LeafArrays, test: Predicate): boolean {
  if (leaf === 'expand' && Array.isArray(value)) {
    for (const each of value) {
      if (test(each)) return true;
    }
  }
  return test(value);
}

function searchArray(
  array: readonly Value[],
  parts: readonly string[],
  from: number,
  leaf: LeafArrays,
  test: Predicate,
): boolean {
  const part = at(parts, from);
  const position = /^\d+$/.test(part) ? Number(part) : -1;
  for (let i = 0; i < array.length; i++) {
    const each = array[i];
    if (isDocument(each) && search(each, parts, from, leaf, test)) return true;
    if (i !== position) continue;
    if (from === parts.length - 1) {
      if (testLeaf(each, leaf, test)) return true;
    } else if (isDocument(each)) {
      if (search(each, parts, from + 1, leaf, test)) return true;
    } else if (Array.isArray(each) && searchArray(each, parts, from + 1, leaf, test)) {
      return true;
    }
  }
  // A position past the end is a missing value of its own; other paths into an array have only its elements.
  return position >= array.length && from === parts.length - 1 ? test(undefined) : false;
}

function search(
  document: Document,
  parts: readonly string[],
  from: number,
  leaf: LeafArrays,
  test: Predicate,
): boolean {
  const value = field(document, at(parts, from));
  if (from === parts.length - 1) return testLeaf(value, leaf, test);
  if (isDocument(value)) return search(value, parts, from + 1, leaf, test);
  if (Array.isArray(value)) return searchArray(value, parts, from + 1, leaf, test);
  return test(undefined);
}

/** A test of a whole document from a test of a value: true when any of the values that the path leads to passes. */
export function anyAt(path: string, leaf: LeafArrays, test: Predicate): (document: Document) => boolean {
  const parts = path.split('.');
  if (parts.length === 1) return (document) => testLeaf(field(document, path), leaf, test);
  return (document) => search(document, parts, 0, leaf, test);
}

/** All values that `distinct` and the like see at a path: arrays on the way and at the end give their elements. */
export function valuesAt(document: Document, path: string): Value[] {
  const found: Value[] = [];
  const collect = (value: Value, parts: readonly string[]): void => {
    const [part, ...rest] = parts;
    if (part === undefined) {
      if (Array.isArray(value)) found.push(...value);
      else if (value !== undefined) found.push(value);
    } else if (Array.isArray(value)) {
      if (/^\d+$/.test(part)) collect(value[Number(part)], rest);
      for (const each of value) {
        if (isDocument(each)) collect(each, parts);
      }
    } else if (isDocument(value)) {
      collect(field(value, part), rest);
    }
  };
  collect(document, path.split('.'));
  return found;
}
