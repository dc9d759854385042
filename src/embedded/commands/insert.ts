import type { Command } from './request';
import { flagIn, namespaceIn } from './request';
import { withId } from '../storage/storable';
import { runStatements, statementsIn, store, withWriteErrors } from './writes';

export const insert: Command = (request) => {
  const { engine, body } = request;
  const documents = statementsIn(body, 'documents');
  const collection = engine.store.obtain(namespaceIn(request));
  const bypasses = flagIn(body, 'bypassDocumentValidation');
  let n = 0;
  const errors = runStatements(documents, body.ordered !== false, (document) => {
    store(collection, withId(document), bypasses);
    n++;
  });
  return withWriteErrors({ n }, errors);
};
