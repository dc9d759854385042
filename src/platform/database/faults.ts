import { mongo } from 'mongoose';

/**
 * What a server answers while it shuts down, steps down or can't reach its peers. The driver labels these as worth a retry only
 * where it would retry by itself, which it does neither on a standalone server nor for a write of many documents.
 */
const NOT_SERVING: unknown[] = [
  6, // HostUnreachable
  7, // HostNotFound
  89, // NetworkTimeout
  91, // ShutdownInProgress
  189, // PrimarySteppedDown
  262, // ExceededTimeLimit
  9001, // SocketException
  10_107, // NotWritablePrimary
  11_600, // InterruptedAtShutdown
  11_602, // InterruptedDueToReplStateChange
  13_435, // NotPrimaryNoSecondaryOk
  13_436, // NotPrimaryOrSecondary
];

/** True when the database could not be reached or was changing its primary: the same call may succeed later as it is. */
export function isDatabaseUnreachable(error: unknown): boolean {
  // A write of many documents wraps what ended it.
  if (error instanceof mongo.MongoBulkWriteError && error.errorResponse instanceof Error)
    return isDatabaseUnreachable(error.errorResponse);
  return (
    error instanceof mongo.MongoNetworkError ||
    error instanceof mongo.MongoServerSelectionError ||
    error instanceof mongo.MongoNotConnectedError ||
    error instanceof mongo.MongoTopologyClosedError ||
    error instanceof mongo.MongoClientClosedError ||
    (error instanceof mongo.MongoServerError && NOT_SERVING.includes(error.code)) ||
    (error instanceof mongo.MongoError && error.hasErrorLabel('RetryableWriteError'))
  );
}

/** The call may have been applied although it failed here. */
export const isReplyLost = (error: unknown): boolean => error instanceof mongo.MongoNetworkError;

const DUPLICATE_KEY = 11_000;

/** True when a unique index refused the write: a document with that key is there already. */
export const isDuplicateKey = (error: unknown): boolean =>
  error instanceof mongo.MongoServerError && error.code === DUPLICATE_KEY;

/** The same of an unordered bulk write: every operation that failed did so for that reason. */
export const onlyDuplicateKeys = (error: unknown): boolean =>
  error instanceof mongo.MongoBulkWriteError &&
  [error.writeErrors].flat().every(({ code }) => code === DUPLICATE_KEY);
