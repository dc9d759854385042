import type { Document } from '../bson/values';
import { select } from '../query/execution';
import type { Namespace } from '../storage/store';
import type { Command, Request } from './request';
import { documentIn, documentsIn, namespaceIn, wholeNumberIn } from './request';
import { selectionOf } from '../query/selection';
import { runStatements, withWriteErrors } from './writes';

function runDelete(request: Request, namespace: Namespace, statement: Document): number {
  const filter = documentIn(statement, 'q');
  const scope = request.scope.with({
    filter,
    ...('collation' in statement ? { collation: statement.collation } : {}),
  });
  const collection = request.engine.store.existing(namespace);
  if (!collection) {
    scope.test(filter);
    return 0;
  }
  const limit = wholeNumberIn(statement, 'limit', 0);
  const found = [...select(selectionOf(collection, { filter, hint: statement.hint, limit }, scope))];
  for (const record of found) collection.remove(record);
  return found.length;
}

export const remove: Command = (request) => {
  const namespace = namespaceIn(request);
  let n = 0;
  const errors = runStatements(
    documentsIn(request.body, 'deletes'),
    request.body.ordered !== false,
    (statement) => {
      n += runDelete(request, namespace, statement);
    },
  );
  return withWriteErrors({ n }, errors);
};
