import { withIdFirst } from '../bson/field-order';
import type { Document, Value } from '../bson/values';
import { field, isDocument } from '../bson/values';
import { badValue, CommandError, failedToParse } from '../errors';
import { select } from '../query/execution';
import { selectionOf } from '../query/selection';
import { requireStorable, withId } from '../storage/storable';
import type { Scope } from '../scope';
import { formatValue } from '../storage/format-value';
import { Collection } from '../storage/collection';
import type { Namespace, Store } from '../storage/store';
import { namespaceOf } from '../storage/store';
import { compileUpdate } from '../update/updater';

export interface WriteTarget {
  readonly store: Store;
  readonly db: string;
  readonly scope: Scope;
}

function targetOf(argument: Value, db: string): Namespace {
  if (typeof argument === 'string') return { db, collection: argument };
  if (isDocument(argument) && typeof argument.coll === 'string') {
    return { db: typeof argument.db === 'string' ? argument.db : db, collection: argument.coll };
  }
  throw failedToParse('a target must be a string or an object with db and coll');
}

/** Puts all documents in place of what a collection holds, or none of them. */
export function out(documents: Iterable<Document>, argument: Value, { store, db }: WriteTarget): void {
  const target = targetOf(argument, db);
  const existing = store.existing(target);
  const made = new Collection(namespaceOf(target), existing?.options ?? {});
  made.validation = existing?.validation;
  for (const { definition } of existing?.indexes ?? [])
    if (definition.name !== '_id_') made.createIndex(definition);
  for (const document of documents) {
    const stored = withId(document);
    requireStorable(stored);
    made.validate(stored);
    made.insert(stored);
  }
  store.put(target, made);
}

const WHEN_NOT_MATCHED = ['insert', 'discard', 'fail'];
const WHEN_MATCHED = ['replace', 'keepExisting', 'merge', 'fail'];

function duplicateOf(existing: Document, on: readonly string[], namespace: string): CommandError {
  const keyValue = Object.fromEntries(on.map((path) => [path, field(existing, path) ?? null]));
  const keyPattern = Object.fromEntries(on.map((path) => [path, 1]));
  return new CommandError(
    11000,
    `PlanExecutor error during aggregation :: caused by :: E11000 duplicate key error collection: ${namespace} dup key: ${formatValue(keyValue)}`,
    { keyPattern, keyValue },
  );
}

function mergeInto(
  whenMatched: Value,
  existing: Document,
  incoming: Document,
  { scope }: WriteTarget,
  variables: Document,
): Document {
  if (Array.isArray(whenMatched)) {
    const projection = scope.withVariables(variables);
    return compileUpdate(whenMatched, [], { projection, now: scope.now }).apply(existing, false);
  }
  switch (whenMatched) {
    case 'replace':
      return withIdFirst(incoming, existing._id);
    case 'merge':
      return { ...existing, ...incoming, _id: existing._id };
    default:
      return existing;
  }
}

export function merge(documents: Iterable<Document>, argument: Value, target: WriteTarget): void {
  const specification: Document = isDocument(argument) ? argument : { into: argument };
  const { on = '_id', whenMatched = 'merge', whenNotMatched = 'insert', let: variables } = specification;
  const namespace = targetOf(specification.into, target.db);
  if (!WHEN_NOT_MATCHED.includes(whenNotMatched as string))
    throw badValue(
      `Enumeration value ${formatValue(whenNotMatched)} for field '$merge.whenNotMatched' is not a valid value.`,
    );
  if (!Array.isArray(whenMatched) && !WHEN_MATCHED.includes(whenMatched as string))
    throw badValue(
      `Enumeration value ${formatValue(whenMatched)} for field '$merge.whenMatched' is not a valid value.`,
    );
  const paths = (Array.isArray(on) ? on : [on]).map(String);
  const collection = target.store.obtain(namespace);
  const isUnique = collection.indexes.some(
    ({ definition: { unique, parts, partialFilter } }) =>
      unique &&
      !partialFilter &&
      parts.length === paths.length &&
      parts.every(({ path }) => paths.includes(path)),
  );
  if (!isUnique) throw new CommandError(51183, 'Cannot find index to verify that join fields will be unique');
  for (const document of [...documents]) {
    const incoming = withId(document);
    const filter = Object.fromEntries(paths.map((path) => [path, { $eq: field(incoming, path) ?? null }]));
    const [record] = select(selectionOf(collection, { filter, limit: 1 }, target.scope));
    if (record && whenMatched === 'fail') throw duplicateOf(record.document, paths, collection.namespace);
    if (record) {
      const bindings = isDocument(variables)
        ? Object.fromEntries(
            Object.entries(variables).map(([name, each]) => [
              name,
              target.scope.evaluator(each)(incoming) ?? null,
            ]),
          )
        : { new: incoming };
      const merged = mergeInto(whenMatched, record.document, incoming, target, bindings);
      requireStorable(merged);
      collection.validate(merged);
      collection.replace(record, merged);
    } else if (whenNotMatched === 'insert') {
      requireStorable(incoming);
      collection.validate(incoming);
      collection.insert(incoming);
    } else if (whenNotMatched === 'fail') {
      throw new CommandError(
        13113,
        '$merge could not find a matching document in the target collection for at least one document in the source collection',
      );
    }
  }
}
