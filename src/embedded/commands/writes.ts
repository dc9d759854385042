import type { Document } from '../bson/values';
import { CommandError } from '../errors';
import type { Collection } from '../storage/collection';
import { requireStorable } from '../storage/storable';
import type { Reply } from './request';
import { documentsIn } from './request';

/** What servers announce as maxWriteBatchSize. */
export const MAX_BATCH_SIZE = 100_000;

/** @throws CommandError 16 for none or too many */
export function statementsIn(body: Document, name: string): Document[] {
  const statements = documentsIn(body, name);
  if (statements.length > 0 && statements.length <= MAX_BATCH_SIZE) return statements;
  throw new CommandError(
    16,
    `Write batch sizes must be between 1 and ${MAX_BATCH_SIZE}. Got ${statements.length} operations.`,
  );
}

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
