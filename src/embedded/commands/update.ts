import type { Document, Value } from '../bson/values';
import { field } from '../bson/values';
import { CommandError, failedToParse } from '../errors';
import { select } from '../query/execution';
import type { Scope } from '../scope';
import type { Collection } from '../storage/collection';
import type { Namespace } from '../storage/store';
import type { Updater } from '../update/updater';
import { documentToInsert } from '../update/insertion';
import { compileUpdate, isReplacement } from '../update/updater';
import type { Command, Reply, Request } from './request';
import { documentIn, flagIn, namespaceIn, valuesIn } from './request';
import { selectionOf } from '../query/selection';
import { requireStorable } from '../storage/storable';
import { runStatements, statementsIn, store, withWriteErrors } from './writes';

const KNOWN_FIELDS = new Set([
  'q',
  'u',
  'c',
  'multi',
  'upsert',
  'hint',
  'collation',
  'arrayFilters',
  'sampleId',
]);

interface Outcome {
  matched: number;
  modified: number;
  upsertedId: Value;
}

/** Puts the updated document in place. @returns whether anything changed */
export function applyTo(
  collection: Collection,
  record: Parameters<Collection['replace']>[0],
  updater: Updater,
  bypasses: boolean,
): boolean {
  const before = record.document;
  const after = updater.apply(before, false);
  if (after === before) return false;
  requireStorable(after);
  if (!bypasses) collection.validate(after);
  collection.replace(record, after);
  return true;
}

export function compileFor(statement: Document, update: Value, arrayFilters: Value[], scope: Scope): Updater {
  const constants = documentIn(statement, 'c');
  const projection = Object.keys(constants).length > 0 ? scope.withVariables(constants) : scope;
  return compileUpdate(update, arrayFilters, { projection, now: scope.now });
}

export function upsert(
  request: Request,
  namespace: Namespace,
  filter: Document,
  update: Value,
  updater: Updater,
): Document {
  const document = documentToInsert(filter, update, updater);
  store(request.engine.store.obtain(namespace), document, flagIn(request.body, 'bypassDocumentValidation'));
  return document;
}

function runUpdate(request: Request, namespace: Namespace, statement: Document): Outcome {
  const filter = documentIn(statement, 'q');
  const scope = request.scope.with({
    filter,
    ...('collation' in statement ? { collation: statement.collation } : {}),
  });
  const multi = flagIn(statement, 'multi');
  if (multi && isReplacement(statement.u)) {
    throw failedToParse('multi update is not supported for replacement-style update');
  }
  const updater = compileFor(statement, statement.u, valuesIn(statement, 'arrayFilters'), scope);
  const bypasses = flagIn(request.body, 'bypassDocumentValidation');
  const outcome: Outcome = { matched: 0, modified: 0, upsertedId: undefined };
  const collection = request.engine.store.existing(namespace);
  if (collection) {
    const selection = selectionOf(collection, { filter, hint: statement.hint, limit: multi ? 0 : 1 }, scope);
    // All are found before the first changes, so that none is met again where its change moves it in the index.
    for (const record of [...select(selection)]) {
      outcome.matched++;
      if (applyTo(collection, record, updater, bypasses)) outcome.modified++;
    }
  } else {
    scope.test(filter);
  }
  if (outcome.matched === 0 && flagIn(statement, 'upsert')) {
    outcome.upsertedId = field(upsert(request, namespace, filter, statement.u, updater), '_id');
  }
  return outcome;
}

function requireKnownFields(statement: Document): void {
  const unknown = Object.keys(statement).find((name) => !KNOWN_FIELDS.has(name));
  if (unknown !== undefined) {
    throw new CommandError(40415, `BSON field 'update.updates.${unknown}' is an unknown field.`);
  }
}

export const update: Command = (request) => {
  const { body } = request;
  const namespace = namespaceIn(request);
  let [n, nModified] = [0, 0];
  const upserted: Document[] = [];
  const statements = statementsIn(body, 'updates');
  // A server that doesn't know a field refuses the whole command before it carries out any of it.
  statements.forEach(requireKnownFields);
  const errors = runStatements(statements, body.ordered !== false, (statement, index) => {
    const { matched, modified, upsertedId } = runUpdate(request, namespace, statement);
    n += upsertedId === undefined ? matched : 1;
    nModified += modified;
    if (upsertedId !== undefined) upserted.push({ index, _id: upsertedId });
  });
  const reply: Reply = { n, nModified };
  if (upserted.length > 0) reply.upserted = upserted;
  return withWriteErrors(reply, errors);
};
