import type { Document, Value } from '../bson/values';
import { isDocument } from '../bson/values';
import { CommandError } from '../errors';
import { withId } from '../storage/storable';
import { withChange } from './paths';
import type { Updater } from './updater';
import { isReplacement } from './updater';

function equalityOf(value: Value): Value {
  if (!isDocument(value) || !Object.keys(value)[0]?.startsWith('$')) {
    return value !== null && typeof value === 'object' && 'pattern' in value ? undefined : value;
  }
  if (value.$eq !== undefined) return value.$eq;
  for (const name of ['$in', '$all'] as const) {
    const only = value[name];
    if (Array.isArray(only) && only.length === 1) return only[0];
  }
  return undefined;
}

/** The paths that a filter asks to have one value, with that value; a path comes twice when it is asked for twice. */
function* equalitiesIn(filter: Document): Generator<[string, Value]> {
  for (const [name, value] of Object.entries(filter)) {
    if (name === '$and' && Array.isArray(value)) {
      for (const clause of value) if (isDocument(clause)) yield* equalitiesIn(clause);
    } else if (name === '$or' && Array.isArray(value) && value.length === 1 && isDocument(value[0])) {
      yield* equalitiesIn(value[0]);
    } else if (!name.startsWith('$')) {
      const equal = equalityOf(value);
      if (equal !== undefined) yield [name, equal];
    }
  }
}

function requireOneValue(path: string, others: Iterable<string>): void {
  for (const other of others) {
    if (path === other) {
      throw new CommandError(54, `cannot infer query fields to set, path '${path}' is matched twice`);
    }
    if (path.startsWith(`${other}.`) || other.startsWith(`${path}.`)) {
      throw new CommandError(
        54,
        `cannot infer query fields to set, both paths '${other}' and '${path}' are matched`,
      );
    }
  }
}

/**
 * The document that an upsert inserts: what the filter asks to be equal, changed by the update, with an `_id`.
 * @throws CommandError 54 when the filter asks for more than one value of a field
 */
export function documentToInsert(filter: Document, update: Value, updater: Updater): Document {
  const equalities = new Map<string, Value>();
  for (const [path, value] of equalitiesIn(filter)) {
    if (isReplacement(update) && path !== '_id') continue;
    requireOneValue(path, equalities.keys());
    equalities.set(path, value);
  }
  let base: Document = {};
  for (const [path, value] of equalities) base = withChange(base, path.split('.'), () => value, true);
  return withId(updater.apply(base, true));
}
