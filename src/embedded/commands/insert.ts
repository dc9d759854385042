import type { Command } from './request';
import { documentsIn, flagIn, namespaceIn } from './request';
import { withId } from '../storage/storable';
import { runStatements, store, withWriteErrors } from './writes';

export const insert: Command = (request) => {
  const { engine, body } = request;
  const collection = engine.store.obtain(namespaceIn(request));
  const bypasses = flagIn(body, 'bypassDocumentValidation');
  let n = 0;
  const errors = runStatements(documentsIn(body, 'documents'), body.ordered !== false, (document) => {
    store(collection, withId(document), bypasses);
    n++;
  });
  return withWriteErrors({ n }, errors);
};
