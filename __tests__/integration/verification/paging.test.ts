import { Keypair } from '@stellar/stellar-sdk';
import type { mongo } from 'mongoose';
import mongoose, { type Connection } from 'mongoose';
import { silentLogger } from '../../../src/platform/logger';
import { VerificationJobs } from '../../../src/verification/verification-jobs.repository';
import { openTestDatabase, type TestDatabase } from '../../support/database';

describe('the jobs of an owner who has many', () => {
  const JOBS = 3000;
  const SAME_MOMENT = 7;
  const owner = Keypair.random().publicKey();
  let database: TestDatabase;
  let connection: Connection;
  let jobs: VerificationJobs;
  const sent: mongo.Document[] = [];

  beforeAll(async () => {
    database = await openTestDatabase();
    connection = await mongoose.createConnection(database.uri, { monitorCommands: true }).asPromise();
    jobs = new VerificationJobs(connection, silentLogger());
    await jobs.ensureIndexes();
    await connection.collection('verificationJobs').insertMany(
      Array.from({ length: JOBS }, (_, index) => ({
        requestId: String(index),
        generation: 0,
        ownerPublicKey: owner,
        createdAt: new Date(1_700_000_000_000 + Math.floor(index / SAME_MOMENT)),
      })),
    );
    connection.getClient().on('commandStarted', ({ command }) => {
      if ('find' in command) sent.push(command);
    });
  });
  afterAll(async () => {
    await connection.close();
    await database.close();
  });

  it('come page by page, each once, newest first, and the last page costs what the first does', async () => {
    const seen = new Set<string>();
    let last = Infinity;
    let after: string | undefined;
    do {
      const page = await jobs.pageOfOwner(owner, 100, after);
      for (const job of page.jobs) {
        expect(job.createdAt.getTime()).toBeLessThanOrEqual(last);
        last = job.createdAt.getTime();
        seen.add(job._id.toHexString());
      }
      after = page.next ?? undefined;
    } while (after !== undefined);
    expect(seen.size).toBe(JOBS);

    const { filter, sort, hint, limit } = sent.at(-1)!;
    const explained = await connection
      .getClient()
      .db(connection.name)
      .command({
        explain: {
          find: 'verificationJobs',
          filter: filter as object,
          sort: sort as object,
          hint: hint as string,
          limit: limit as number,
        },
        verbosity: 'executionStats',
      });
    const stats = explained['executionStats'] as { totalKeysExamined?: number } | undefined;
    // DocumentDB's explain leaves the counts out.
    expect(stats?.totalKeysExamined ?? 0).toBeLessThanOrEqual(100 + 2 * SAME_MOMENT);
  });
});
