import { compareValues } from '../bson/compare';
import { namesOf } from '../bson/field-order';
import type { Value } from '../bson/values';
import { at, bsonTypeName, isDocument } from '../bson/values';

/** Equal in type too, all the way down: writing one over the other changes nothing. */
export function sameValue(a: Value, b: Value): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((each, i) => sameValue(each, b[i]));
  }
  if (isDocument(a) && isDocument(b)) {
    const [namesA, namesB] = [namesOf(a), namesOf(b)];
    return (
      namesA.length === namesB.length &&
      namesA.every((name, i) => name === at(namesB, i) && sameValue(a[name], b[name]))
    );
  }
  return bsonTypeName(a) === bsonTypeName(b) && compareValues(a, b) === 0;
}
