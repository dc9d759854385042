import mongoose, { type Connection } from 'mongoose';
import { describeFailure, TransientError } from '../errors';
import type { Logger } from '../logger';

export interface ConnectionOptions {
  uri: string;
  /** How long the first connection may take, and how long any later call waits for a server before it fails. */
  serverSelectionTimeoutMs: number;
  logger: Logger;
}

/** Long enough for a slow query, short enough that a server which stopped answering is noticed within a lease. */
const SOCKET_TIMEOUT_MS = 45_000;

/**
 * One connection pool for this process. Buffering is off: while the database is away a call fails within the selection
 * timeout, and the caller (a lane, a route) decides what to do, instead of piling up in memory.
 * Writes are acknowledged by a majority, because a claim that a failover rolls back would be handed out twice.
 * @throws TransientError DATABASE_UNREACHABLE
 */
export async function connectDatabase({
  uri,
  serverSelectionTimeoutMs,
  logger,
}: ConnectionOptions): Promise<Connection> {
  const connection = mongoose.createConnection(uri, {
    autoIndex: false,
    autoCreate: false,
    bufferCommands: false,
    serverSelectionTimeoutMS: serverSelectionTimeoutMs,
    connectTimeoutMS: serverSelectionTimeoutMs,
    socketTimeoutMS: SOCKET_TIMEOUT_MS,
    writeConcern: { w: 'majority' },
  });
  let opened = false;
  let closing = false;
  connection.on('disconnecting', () => (closing = true));
  connection.on('disconnected', () => {
    if (opened && !closing) logger.warn('database connection lost; calls fail until it is back');
  });
  connection.on('reconnected', () => logger.info('database connection is back'));
  connection.on('error', (error: unknown) => logger.warn({ err: error }, 'database connection error'));
  try {
    await connection.asPromise();
  } catch (error) {
    const { message } = describeFailure(error);
    throw new TransientError(
      'DATABASE_UNREACHABLE',
      `the database of MONGODB_URI could not be opened: ${message}`,
      {
        cause: error,
      },
    );
  }
  opened = true;
  return connection;
}
