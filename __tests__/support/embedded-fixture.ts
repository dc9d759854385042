import type { Binary, Collection, Db, Document, ObjectId } from 'mongodb';
import { MongoClient } from 'mongodb';
import type { EmbeddedServer } from '../../src/embedded';
import { startEmbeddedServer } from '../../src/embedded';

/** Documents of any shape, with ids of any type. */
export interface Thing extends Document {
  _id: number | string | Date | Binary | ObjectId;
}

export interface EmbeddedFixture {
  readonly client: MongoClient;
  readonly db: Db;
  /** A collection of its own for each test. */
  readonly things: Collection<Thing>;
}

/** An embedded engine for the tests of a file. To be called at the top of it. */
export function useEmbedded(): EmbeddedFixture {
  let server: EmbeddedServer;
  let client: MongoClient;
  let tests = 0;
  beforeAll(async () => {
    server = await startEmbeddedServer();
    client = await new MongoClient(server.uri).connect();
  });
  afterAll(async () => {
    await client.close();
    await server.close();
  });
  beforeEach(() => {
    tests++;
  });
  return {
    get client() {
      return client;
    },
    get db() {
      return client.db('embedded');
    },
    get things() {
      return client.db('embedded').collection<Thing>(`things${tests}`);
    },
  };
}

export const range = <T>(count: number, make: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i));

/** What a promise is rejected with; it has to be. */
export async function refusal(
  promise: Promise<unknown>,
): Promise<{ code: number; [field: string]: unknown }> {
  return promise.then(
    () => Promise.reject(new Error('it was accepted')),
    (error: unknown) => error as { code: number },
  );
}
