import type { Document, Value } from '../bson/values';
import { isDocument } from '../bson/values';
import type { FilterContext } from './filter';
import { compileField, isOperatorDocument } from './filter';
import type { Predicate } from './path';
import { elementTest } from './operators';

/** The test that a filter puts to the elements of the array at `path`, if it says anything about them. */
function testFor(filter: Document, path: string, context: FilterContext): Predicate | undefined {
  for (const [name, value] of Object.entries(filter)) {
    if ((name === '$and' || name === '$or') && Array.isArray(value)) {
      for (const clause of value) {
        const test = isDocument(clause) ? testFor(clause, path, context) : undefined;
        if (test) return test;
      }
    } else if (name === path) {
      if (isOperatorDocument(value) && value.$elemMatch !== undefined)
        return elementTest(value.$elemMatch, context);
      const test = compileField('value', value, context);
      return (each) => test({ value: each });
    } else if (name.startsWith(`${path}.`)) {
      const test = compileField(name.slice(path.length + 1), value, context);
      return (each) => isDocument(each) && test(each);
    }
  }
  return undefined;
}

/** Which element of an array the filter matched: what `$` in a path stands for. Undefined when it is about none. */
export function positionOf(
  filter: Document,
  path: string,
  array: readonly Value[],
  context: FilterContext,
): number | undefined {
  const test = testFor(filter, path, context);
  const position = test ? array.findIndex((each) => test(each)) : -1;
  return position < 0 ? undefined : position;
}
