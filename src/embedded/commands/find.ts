import type { Document } from '../bson/values';
import { CommandError } from '../errors';
import { select } from '../query/execution';
import { compileProjection } from '../query/projection';
import { namespaceOf } from '../storage/store';
import { runAggregate } from './aggregate';
import type { Command, Request } from './request';
import {
  cursorReply,
  DEFAULT_FIRST_BATCH,
  documentIn,
  flagIn,
  namespaceIn,
  optionalDocumentIn,
  wholeNumberIn,
} from './request';
import type { Query } from '../query/selection';
import { selectionOf } from '../query/selection';

export function queryOf({ body }: Request): Query {
  return {
    filter: documentIn(body, 'filter'),
    sort: optionalDocumentIn(body, 'sort'),
    skip: wholeNumberIn(body, 'skip', 0),
    limit: wholeNumberIn(body, 'limit', 0),
    hint: body.hint,
  };
}

function* projected(
  documents: Iterable<{ readonly document: Document }>,
  project: (document: Document) => Document,
): Generator<Document> {
  for (const { document } of documents) yield project(document);
}

/** A `find` over a view is the view's pipeline with what was asked for behind it. */
function pipelineOf(request: Request): Document[] {
  const { filter, sort, skip = 0, limit = 0 } = queryOf(request);
  const projection = documentIn(request.body, 'projection');
  return [
    { $match: filter },
    ...(sort && Object.keys(sort).length > 0 ? [{ $sort: sort }] : []),
    ...(skip > 0 ? [{ $skip: skip }] : []),
    ...(limit > 0 ? [{ $limit: limit }] : []),
    ...(Object.keys(projection).length > 0 ? [{ $project: projection }] : []),
  ];
}

export const find: Command = (request) => {
  const { engine, body, scope } = request;
  const namespace = namespaceIn(request);
  if (flagIn(body, 'tailable')) throw new CommandError(2, 'tailable cursors are not supported here');
  const options = {
    batchSize: wholeNumberIn(body, 'batchSize', DEFAULT_FIRST_BATCH),
    singleBatch: flagIn(body, 'singleBatch'),
  };
  const query = queryOf(request);
  const found = engine.store.find(namespace);
  if (found?.kind === 'view') {
    return cursorReply(
      request,
      namespaceOf(namespace),
      runAggregate(request, namespace, pipelineOf(request)),
      options,
    );
  }
  const projection = documentIn(body, 'projection');
  const project =
    Object.keys(projection).length > 0
      ? compileProjection(projection, scope.with({ filter: query.filter }))
      : (document: Document): Document => document;
  if (!found) {
    scope.test(query.filter);
    return cursorReply(request, namespaceOf(namespace), [], options);
  }
  const selection = selectionOf(found, query, scope);
  return cursorReply(request, namespaceOf(namespace), projected(select(selection), project), options);
};
