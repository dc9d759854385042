import { randomBytes } from 'node:crypto';
import mongoose, { type Connection } from 'mongoose';

export interface TestDatabase {
  /** Connection string of this test's own database, for child processes. */
  uri: string;
  connection: Connection;
  /** Drops the database and disconnects. */
  close(): Promise<void>;
}

/** The server that global setup picked for this run. */
export function testServerUri(): string {
  const uri = process.env['TEST_MONGODB_URI'];
  if (uri === undefined)
    throw new Error('TEST_MONGODB_URI is unset: Jest global setup has not picked a database');
  return uri;
}

/** A database of its own for one test file, so that files can run side by side and in any order. */
export async function openTestDatabase(): Promise<TestDatabase> {
  const url = new URL(testServerUri());
  url.pathname = `/test_${process.pid}_${randomBytes(5).toString('hex')}`;
  const uri = url.toString();
  const connection = await mongoose
    .createConnection(uri, { autoIndex: false, autoCreate: false })
    .asPromise();
  return {
    uri,
    connection,
    close: async () => {
      await connection.dropDatabase();
      await connection.close();
    },
  };
}
