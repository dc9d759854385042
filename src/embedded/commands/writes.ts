import type { Document } from '../bson/values';
import { CommandError } from '../errors';
import type { Collection } from '../storage/collection';
import { requireStorable } from '../storage/storable';
import type { Reply } from './request';

/** Statements of one write command: carried out in turn, and to the end unless `ordered` stops them at the first error. */
export function runStatements<S>(
  statements: readonly S[],
  ordered: boolean,
  run: (statement: S, index: number) => void,
): Document[] {
  const errors: Document[] = [];
  for (let index = 0; index < statements.length; index++) {
    try {
      run(statements[index] as S, index);
    } catch (error) {
      if (!(error instanceof CommandError) || error.code === 50) throw error;
      errors.push({ index, code: error.code, errmsg: error.message, ...error.details });
      if (ordered) break;
    }
  }
  return errors;
}

export function withWriteErrors(reply: Reply, writeErrors: readonly Document[]): Reply {
  return writeErrors.length > 0 ? { ...reply, writeErrors: [...writeErrors], ok: 1 } : { ...reply, ok: 1 };
}

export function store(collection: Collection, document: Document, bypassesValidation: boolean): void {
  requireStorable(document);
  if (!bypassesValidation) collection.validate(document);
  collection.insert(document);
}
