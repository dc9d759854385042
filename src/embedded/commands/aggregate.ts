import { PipelineRunner } from '../aggregation/pipeline';
import type { Document, Value } from '../bson/values';
import { isDocument } from '../bson/values';
import { CommandError, typeMismatch } from '../errors';
import type { Namespace } from '../storage/store';
import { namespaceOf } from '../storage/store';
import type { Command, Request } from './request';
import {
  cursorReply,
  DEFAULT_FIRST_BATCH,
  documentIn,
  namespaceIn,
  valuesIn,
  wholeNumberIn,
} from './request';
import { collectionStatistics } from './statistics';

/** The stages that stand at the start of a pipeline and make its documents themselves. */
function sourceFor({ engine, scope, body, connectionId }: Request) {
  return (
    name: string,
    argument: Value,
    namespace: Namespace | undefined,
  ): Iterable<Document> | undefined => {
    switch (name) {
      case '$documents': {
        const documents = scope.evaluator(argument)({});
        if (!Array.isArray(documents) || !documents.every(isDocument)) {
          throw new CommandError(5858203, 'an array is expected for $documents');
        }
        return documents;
      }
      case '$currentOp':
        return [
          {
            type: 'op',
            host: '127.0.0.1',
            desc: `conn${connectionId}`,
            connectionId,
            active: true,
            op: 'command',
          },
        ];
      case '$listLocalSessions':
      case '$listSessions':
        // Sessions aren't kept: the one that asks is the only one known.
        return isDocument(body.lsid) ? [{ _id: body.lsid, lastUse: scope.now }] : [];
      case '$collStats':
        return namespace
          ? [collectionStatistics(engine, namespace, isDocument(argument) ? argument : {})]
          : undefined;
      case '$indexStats': {
        const found = namespace && engine.store.find(namespace);
        return found?.kind === 'collection'
          ? found.indexes.map(({ definition: { name, key, spec } }) => ({
              name,
              key,
              host: '127.0.0.1',
              accesses: { ops: 0n, since: new Date(engine.startedAtMs) },
              spec,
            }))
          : [];
      }
      default:
        return undefined;
    }
  };
}

export function runnerFor(request: Request, db: string): PipelineRunner {
  return new PipelineRunner(request.engine.store, db, request.scope, sourceFor(request), request.body.hint);
}

export function runAggregate(
  request: Request,
  namespace: Namespace,
  pipeline: readonly Value[],
): Iterable<Document> {
  return runnerFor(request, namespace.db).run(namespace, pipeline);
}

export const aggregate: Command = (request) => {
  const { body, db } = request;
  if (!isDocument(body.cursor)) {
    throw new CommandError(
      9,
      "The 'cursor' option is required, except for aggregate with the explain argument",
    );
  }
  if (!Array.isArray(body.pipeline)) throw typeMismatch("'pipeline' option must be specified as an array");
  const pipeline = valuesIn(body, 'pipeline');
  const namespace = typeof body.aggregate === 'string' ? namespaceIn(request) : undefined;
  const results = runnerFor(request, db).run(namespace, pipeline);
  const shown = namespace ? namespaceOf(namespace) : `${db}.$cmd.aggregate`;
  // The whole result is made now: a part made later would see what other commands changed in between.
  const documents = [...results];
  const batchSize = wholeNumberIn(documentIn(body, 'cursor'), 'batchSize', DEFAULT_FIRST_BATCH);
  return cursorReply(request, shown, documents, { batchSize, singleBatch: false });
};
