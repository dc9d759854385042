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
