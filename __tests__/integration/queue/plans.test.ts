import mongoose, { type Connection, type mongo } from 'mongoose';
import type { MongoWorkerQueue } from '../../../src/queue/mongo-worker-queue';
import { openTestDatabase, type TestDatabase } from '../../support/database';
import { claimant, parcelModel, parcelQueue, parcels, type Parcel } from '../../support/queue-fixture';

interface Plan {
  stage: unknown;
  indexName?: unknown;
}

function stagesOf(plan: unknown): Plan[] {
  if (Array.isArray(plan)) return plan.flatMap(stagesOf);
  if (typeof plan !== 'object' || plan === null) return [];
  const nested = Object.values(plan).flatMap(stagesOf);
  return 'stage' in plan ? [plan, ...nested] : nested;
}

/** What the queue really sends, explained by the server. Its history is long, and its backlog of the other phases too. */
describe('the plans of the queue', () => {
  const HISTORY = 2000;
  let database: TestDatabase;
  let connection: Connection;
  let queue: MongoWorkerQueue<Parcel>;
  let sent: mongo.Document[];

  beforeAll(async () => {
    database = await openTestDatabase();
    connection = await mongoose.createConnection(database.uri, { monitorCommands: true }).asPromise();
    parcelModel(connection);
    queue = await parcelQueue(connection);
    await queue.enqueueMany(
      Array.from({ length: HISTORY }, (_, i) => ({ key: `h${i}`, payload: { label: '' } })),
    );
    const far = new Date(Date.now() + 3_600_000);
    const lease = { token: 't', workerId: 'w', lane: 0, expiresAt: far };
    const groups = { done: {}, dead: {}, waiting: { dueAt: far }, leased: { lease } };
    await parcels(connection).bulkWrite(
      Object.entries(groups).map(([phase, fields], group) => ({
        updateMany: {
          filter: { key: { $in: Array.from({ length: HISTORY / 4 }, (_, i) => `h${i * 4 + group}`) } },
          update: { $set: { phase, ...fields } },
        },
      })) as never,
    );
    connection.getClient().on('commandStarted', ({ command }) => sent.push(command));
  });
  beforeEach(() => {
    sent = [];
  });
  afterAll(async () => {
    await connection.close();
    await database.close();
  });

  const explain = async (filter: unknown, sort: unknown, hint: unknown) => {
    const find = { find: 'parcels', filter, ...(sort === undefined ? {} : { sort }), hint, limit: 200 };
    const answer = await connection
      .getClient()
      .db(connection.name)
      .command({ explain: find, verbosity: 'executionStats' });
    const stages = stagesOf(answer['queryPlanner']);
    const stats = answer['executionStats'] as
      { totalKeysExamined?: number; totalDocsExamined?: number } | undefined;
    return {
      indexes: stages.filter(({ stage }) => stage === 'IXSCAN').map(({ indexName }) => indexName),
      stages: stages.map(({ stage }) => stage),
      keysExamined: stats?.totalKeysExamined,
      docsExamined: stats?.totalDocsExamined,
    };
  };

  it('of an idle claim touch neither the history, nor what waits, nor what is leased', async () => {
    expect(await queue.claim(claimant('w'))).toEqual({ kind: 'empty' });
    const claim = sent.find((command) => 'findAndModify' in command)!;
    const [stage, sweep] = sent.filter((command) => 'find' in command);
    const plans = await Promise.all([
      explain(claim['query'], claim['sort'], claim['hint']),
      explain(stage!['filter'], stage!['sort'], stage!['hint']),
      explain(sweep!['filter'], sweep!['sort'], sweep!['hint']),
    ]);
    expect(plans.map(({ indexes }) => indexes)).toEqual([
      ['queue_ready'],
      ['queue_waiting'],
      ['queue_leases'],
    ]);
    for (const { stages, keysExamined, docsExamined } of plans) {
      expect(stages).not.toContain('SORT');
      expect(stages).not.toContain('COLLSCAN');
      // DocumentDB's explain leaves the counts out; where they are, they must not grow with the collection.
      expect(keysExamined ?? 0).toBeLessThanOrEqual(1);
      expect(docsExamined ?? 0).toBeLessThanOrEqual(1);
    }
  });

  it('name an index each, whatever the call', async () => {
    await queue.enqueue({ key: 'one', payload: { label: '' } });
    const claim = await queue.claim(claimant('w'));
    if (claim.kind === 'empty') throw new Error('nothing to claim');
    const { lease } = claim.claimed;
    await queue.renew([lease]);
    await queue.renew([lease, { ...lease, jobId: '0'.repeat(24), token: 'x' as never }]);
    await queue.record(lease, { weight: 1 });
    await queue.release(lease, { delayMs: 0 });
    await queue.complete(lease);
    await queue.findUnprojected(10);
    await queue.findByKey('one');
    await queue.replay(lease.jobId);
    await queue.tidy();
    const unhinted = sent
      .flatMap((command) =>
        Array.isArray(command['updates'])
          ? (command['updates'] as mongo.Document[])
          : 'hello' in command
            ? []
            : [command],
      )
      .filter((operation) => operation['hint'] === undefined && !isById(operation));
    expect(unhinted).toEqual([]);
    expect(sent.length).toBeGreaterThan(12);
  });

  const isById = (operation: mongo.Document): boolean =>
    '_id' in ((operation['filter'] ?? operation['q'] ?? operation['query'] ?? {}) as object);
});
