import type { Document } from '../bson/values';
import { CommandError, failedToParse } from '../errors';
import { select } from '../query/execution';
import type { Namespace } from '../storage/store';
import type { Command, Request } from './request';
import { documentIn, namespaceIn, wholeNumberIn } from './request';
import { selectionOf } from '../query/selection';
import { runStatements, statementsIn, withWriteErrors } from './writes';

/** @throws CommandError for any but all, 0, and one, 1 */
function limitOf(statement: Document): number {
  const limit = wholeNumberIn(statement, 'limit', 0);
  if (limit > 1) throw failedToParse(`The limit field in delete objects must be 0 or 1. Got ${limit}`);
  return limit;
}

function requireLimit({ limit }: Document): void {
  if (limit !== undefined) return;
  throw new CommandError(40414, "BSON field 'delete.deletes.limit' is missing but a required field");
}

function runDelete(request: Request, namespace: Namespace, statement: Document): number {
  const filter = documentIn(statement, 'q');
  const limit = limitOf(statement);
  const scope = request.scope.with({
    filter,
    ...('collation' in statement ? { collation: statement.collation } : {}),
  });
  const collection = request.engine.store.existing(namespace);
  if (!collection) {
    scope.test(filter);
    return 0;
  }
  const found = [...select(selectionOf(collection, { filter, hint: statement.hint, limit }, scope))];
  for (const record of found) collection.remove(record);
  return found.length;
}

export const remove: Command = (request) => {
  const namespace = namespaceIn(request);
  let n = 0;
  const statements = statementsIn(request.body, 'deletes');
  statements.forEach(requireLimit);
  const errors = runStatements(statements, request.body.ordered !== false, (statement) => {
    n += runDelete(request, namespace, statement);
  });
  return withWriteErrors({ n }, errors);
};
