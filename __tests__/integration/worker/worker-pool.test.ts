import { mongo } from 'mongoose';
import { BusyError, PermanentError, TransientError } from '../../../src/platform/errors';
import type { DeadLetterRepository } from '../../../src/queue/dead-letters';
import type { WorkerHeartbeatRepository } from '../../../src/worker/worker-heartbeats';
import type { WorkerPool } from '../../../src/worker/worker-pool';
import { openTestDatabase, type TestDatabase } from '../../support/database';
import { parcelQueue } from '../../support/queue-fixture';
import {
  deadLetterRepository,
  heartbeatRepository,
  parcelProjector,
  parcelSource,
  testPool,
  until,
  waitFor,
} from '../../support/worker-fixture';

describe('a worker pool', () => {
  let database: TestDatabase;
  let heartbeats: WorkerHeartbeatRepository;
  let records: DeadLetterRepository;
  const pools: WorkerPool[] = [];

  const started = async (pool: WorkerPool): Promise<WorkerPool> => {
    pools.push(pool);
    await pool.start();
    return pool;
  };

  beforeAll(async () => {
    database = await openTestDatabase();
    heartbeats = await heartbeatRepository(database.connection);
    records = await deadLetterRepository(database.connection);
  });
  afterEach(() => Promise.all(pools.splice(0).map((pool) => pool.stop())));
  afterAll(() => database.close());

  it('drains 60 jobs with 2 processes of 3 lanes, each exactly once', async () => {
    const queue = await parcelQueue(database.connection, 'Drain');
    await queue.enqueueMany(
      Array.from({ length: 60 }, (_, i) => ({ key: `d${i}`, payload: { label: `${i}` } })),
    );
    const seen: string[] = [];
    const finished: string[] = [];
    for (let i = 0; i < 2; i++) {
      const source = parcelSource({
        queue,
        lanes: 3,
        handler: ({ job }) => {
          seen.push(job.key);
          return Promise.resolve({
            kind: 'completed',
            patch: { note: 'delivered' },
            ledger: 100 + seen.length,
          });
        },
      });
      const pool = testPool({ sources: [source], heartbeats });
      pool.events.on('completed', ({ jobId }) => finished.push(jobId));
      await started(pool);
    }
    await until('all completed', () => finished.length === 60);
    expect(new Set(seen).size).toBe(60);
    expect(seen).toHaveLength(60);
    expect(await queue.findByKey('d7')).toMatchObject({
      phase: 'done',
      note: 'delivered',
      attempts: 1,
      lease: null,
    });
  });

  it('retries what may pass, dead-letters what is spent or hopeless, and counts both in its heartbeat', async () => {
    const queue = await parcelQueue(database.connection, 'Fail', { maxAttempts: 2 });
    await queue.enqueue({ key: 'flaky', payload: { label: 'flaky' } });
    await queue.enqueue({ key: 'hopeless', payload: { label: 'hopeless' } });
    const pool = testPool({
      sources: [
        parcelSource({
          queue,
          deadLetters: parcelProjector(queue, records),
          handler: ({ job }) => {
            throw job.label === 'flaky'
              ? new TransientError('GATEWAY_DOWN', 'try later')
              : new PermanentError('BAD_CID', 'never');
          },
        }),
      ],
      heartbeats,
    });
    const dead: string[] = [];
    pool.events.on('dead_lettered', ({ failure }) => dead.push(failure.code));
    await started(pool);
    await until('both dead', () => dead.length === 2);
    await pool.stop();

    expect(await records.find('parcels', 'flaky')).toMatchObject({
      attempts: 2,
      reason: 'retries_exhausted',
      errorCode: 'GATEWAY_DOWN',
      retryable: true,
      requester: 'flaky',
      workerId: pool.workerId,
    });
    expect(await records.find('parcels', 'hopeless')).toMatchObject({
      attempts: 1,
      reason: 'non_retryable',
      retryable: false,
    });
    const { workers } = await heartbeats.readHealth({ staleMs: 60_000, limit: 10 });
    expect(workers.find(({ workerId }) => workerId === pool.workerId)).toMatchObject({
      status: 'stopped',
      alive: false,
      processedCount: 0,
      failedCount: 3,
    });
  });

  it.each([
    ['says so', () => Promise.resolve({ kind: 'postponed', delayMs: 1, reason: 'no slot' } as const)],
    ['meets a full house', () => Promise.reject(new BusyError('NO_SLOT', 'no slot', { retryAfterMs: 1 }))],
    ['loses the database', () => Promise.reject(new mongo.MongoNetworkError('read ECONNRESET'))],
  ])('a job whose handler %s goes back without losing an attempt', async (how, postpone) => {
    const queue = await parcelQueue(database.connection, `Later ${how}`.replaceAll(' ', ''));
    await queue.enqueue({ key: 'later', payload: { label: 'later' } });
    let calls = 0;
    const pool = await started(
      testPool({
        heartbeats,
        sources: [
          parcelSource({
            queue,
            handler: () => {
              calls++;
              return calls < 5 ? postpone() : Promise.resolve({ kind: 'completed' });
            },
          }),
        ],
      }),
    );
    await waitFor(pool, 'completed');
    expect(await queue.findByKey('later')).toMatchObject({
      phase: 'done',
      attempts: 1,
      epoch: 5,
      errors: [],
    });
  });
});
