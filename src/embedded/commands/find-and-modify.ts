import type { Document } from '../bson/values';
import { field } from '../bson/values';
import { failedToParse } from '../errors';
import { select } from '../query/execution';
import { compileProjection } from '../query/projection';
import type { StoredRecord } from '../storage/collection-index';
import { applyTo, compileFor, upsert } from './update';
import type { Command, Request } from './request';
import { documentIn, flagIn, namespaceIn, optionalDocumentIn, valuesIn } from './request';
import type { Query } from '../query/selection';
import { selectionOf } from '../query/selection';

export function findAndModifyQuery({ body }: Request): Query {
  return {
    filter: documentIn(body, 'query'),
    sort: optionalDocumentIn(body, 'sort'),
    hint: body.hint,
    limit: 1,
  };
}

export const findAndModify: Command = (request) => {
  const { engine, body } = request;
  const namespace = namespaceIn(request);
  const query = findAndModifyQuery(request);
  const scope = request.scope.with({ filter: query.filter });
  const removes = flagIn(body, 'remove');
  const returnsNew = flagIn(body, 'new');
  if (removes && body.update !== undefined)
    throw failedToParse('Cannot specify both an update and remove=true');
  if (!removes && body.update === undefined)
    throw failedToParse('Either an update or remove=true must be specified');
  if (removes && returnsNew)
    throw failedToParse(
      "Cannot specify both new=true and remove=true; 'remove' always returns the deleted document",
    );
  const fields = documentIn(body, 'fields');
  const project =
    Object.keys(fields).length > 0
      ? compileProjection(fields, scope)
      : (document: Document): Document => document;
  const updater = removes ? undefined : compileFor({}, body.update, valuesIn(body, 'arrayFilters'), scope);

  const collection = engine.store.existing(namespace);
  let record: StoredRecord | undefined;
  if (collection) [record] = select(selectionOf(collection, query, scope));
  else scope.test(query.filter);

  if (collection && record) {
    const before = record.document;
    if (updater) applyTo(collection, record, updater, flagIn(body, 'bypassDocumentValidation'));
    else collection.remove(record);
    return {
      lastErrorObject: updater ? { n: 1, updatedExisting: true } : { n: 1 },
      value: project(returnsNew ? record.document : before),
      ok: 1,
    };
  }
  if (updater && flagIn(body, 'upsert')) {
    const inserted = upsert(request, namespace, query.filter, body.update, updater);
    return {
      lastErrorObject: { n: 1, updatedExisting: false, upserted: field(inserted, '_id') },
      value: returnsNew ? project(inserted) : null,
      ok: 1,
    };
  }
  return { lastErrorObject: updater ? { n: 0, updatedExisting: false } : { n: 0 }, value: null, ok: 1 };
};
