import type { Document, Value } from '../bson/values';
import { isDocument, isNumeric, toNumber } from '../bson/values';
import { CommandError } from '../errors';
import { isOperatorDocument } from '../query/filter';

const COMPARISONS = new Set(['$eq', '$gt', '$gte', '$lt', '$lte', '$in', '$type']);

function isExistence(name: string, argument: Value): boolean {
  return name === '$exists' && (argument === true || (isNumeric(argument) && toNumber(argument) !== 0));
}

/**
 * What the server can't tell of every change to a document it doesn't take as a filter of an index; taking it here would
 * let through what fails there.
 * @throws CommandError 67
 */
export function requirePartialFilter(filter: Document): void {
  for (const [name, value] of Object.entries(filter)) {
    if ((name === '$and' || name === '$or') && Array.isArray(value)) {
      value.filter(isDocument).forEach(requirePartialFilter);
    } else if (name.startsWith('$')) {
      throw new CommandError(67, `unsupported expression in partial index: ${name}`);
    } else if (isOperatorDocument(value)) {
      const refused = Object.entries(value).find(
        ([operator, argument]) => !COMPARISONS.has(operator) && !isExistence(operator, argument),
      );
      if (refused) throw new CommandError(67, `unsupported expression in partial index: ${refused[0]}`);
    }
  }
}
