import { nativeCollection } from '../../../src/platform/database/native-collection';
import type { WorkerId } from '../../../src/platform/ids';
import type { MongoWorkerQueue } from '../../../src/queue/mongo-worker-queue';
import { workerHeartbeatModel, type WorkerHeartbeat } from '../../../src/worker/worker-heartbeat.model';
import type { HeartbeatReport, WorkerHeartbeatRepository } from '../../../src/worker/worker-heartbeats';
import { openTestDatabase, type TestDatabase } from '../../support/database';
import { parcelQueue, type Parcel } from '../../support/queue-fixture';
import { heartbeatRepository, parcelSource, testPool, until, waitFor } from '../../support/worker-fixture';

describe('heartbeats', () => {
  let database: TestDatabase;
  let heartbeats: WorkerHeartbeatRepository;
  const collection = () => nativeCollection<WorkerHeartbeat>(workerHeartbeatModel(database.connection));
  const report = (workerId: string, status: HeartbeatReport['status'] = 'running'): HeartbeatReport => ({
    workerId,
    status,
    lastProcessedLedger: null,
    processedCount: 0,
    failedCount: 0,
    lastProcessingMs: null,
    pipelines: [],
  });

  beforeAll(async () => {
    database = await openTestDatabase();
    heartbeats = await heartbeatRepository(database.connection);
  });
  afterEach(() => collection().deleteMany({}));
  afterAll(() => database.close());

  it('keep one document a worker, with the time of its start and of the last', async () => {
    await heartbeats.write(report('w'));
    const first = (await collection().findOne({ workerId: 'w' }))!;
    await heartbeats.write({ ...report('w', 'draining'), processedCount: 4, lastProcessedLedger: 77 });
    const [second, ...others] = await collection().find().toArray();
    expect(others).toEqual([]);
    expect(second).toMatchObject({
      status: 'draining',
      processedCount: 4,
      lastProcessedLedger: 77,
      startedAt: first.startedAt,
    });
    expect(second!.lastHeartbeatAt.getTime()).toBeGreaterThanOrEqual(first.lastHeartbeatAt.getTime());
  });

  it('count a worker as alive while it runs and was heard of lately, by the database clock', async () => {
    for (const [workerId, status] of [
      ['fresh', 'running'],
      ['stale', 'running'],
      ['draining', 'draining'],
      ['stopped', 'stopped'],
    ] as const) {
      await heartbeats.write(report(workerId, status));
    }
    await collection().updateOne({ workerId: 'stale' }, [
      { $set: { lastHeartbeatAt: { $subtract: ['$$NOW', 60_001] } } },
    ]);
    const health = await heartbeats.readHealth({ staleMs: 60_000, limit: 10 });
    expect(health).toMatchObject({ healthy: true, alive: 1 });
    expect(Object.fromEntries(health.workers.map(({ workerId, alive }) => [workerId, alive]))).toEqual({
      fresh: true,
      stale: false,
      draining: false,
      stopped: false,
    });
    expect(health.workers.at(-1)).toMatchObject({ workerId: 'stale', ageMs: expect.any(Number) as number });
    expect(health.workers.at(-1)!.ageMs).toBeGreaterThan(60_000);
  });

  it('answer with nobody alive, and with a bounded list that still counts all', async () => {
    expect(await heartbeats.readHealth({ staleMs: 60_000, limit: 10 })).toEqual({
      healthy: false,
      alive: 0,
      workers: [],
    });
    for (let i = 0; i < 5; i++) await heartbeats.write(report(`w${i}`));
    const health = await heartbeats.readHealth({ staleMs: 60_000, limit: 2 });
    expect(health.alive).toBe(5);
    expect(health.workers).toHaveLength(2);
  });

  describe('of a pool', () => {
    let queue: MongoWorkerQueue<Parcel>;
    beforeAll(async () => {
      queue = await parcelQueue(database.connection);
    });

    it('come at the start, at intervals, after each cycle and at the end', async () => {
      const workerId = 'host:1:ab' as WorkerId;
      const handler = () => Promise.resolve({ kind: 'completed', ledger: 500 } as const);
      const pool = testPool({
        workerId,
        heartbeats,
        heartbeatIntervalMs: 40,
        sources: [parcelSource({ queue, handler })],
      });
      const statuses: string[] = [];
      pool.events.on('heartbeat', ({ status }) => statuses.push(status));
      await pool.start();
      expect(statuses).toEqual(['running']);
      await until('intervals', () => statuses.length >= 4);
      await queue.enqueue({ key: 'k', payload: { label: 'k' } });
      await waitFor(pool, 'completed');
      const ran = () => collection().findOne({ workerId, processedCount: 1, lastProcessedLedger: 500 });
      await until('counted', async () => (await ran()) !== null);
      await pool.stop();
      expect(statuses.at(-1)).toBe('stopped');
      expect(await collection().findOne({ workerId })).toMatchObject({
        status: 'stopped',
        processedCount: 1,
        failedCount: 0,
        lastProcessedLedger: 500,
        lastProcessingMs: expect.any(Number) as number,
        pipelines: [{ pipeline: 'parcels', lanes: 1, busy: 0 }],
      });
    });

    it('follow each full cycle while the work does not end', async () => {
      await queue.enqueueMany(
        Array.from({ length: 9 }, (_, i) => ({ key: `c${i}`, payload: { label: '' } })),
      );
      let jobs = 0;
      const pool = testPool({
        heartbeats,
        batchSize: 3,
        sources: [
          parcelSource({
            queue,
            lanes: 2,
            // The ninth never ends by itself, so no lane that runs dry can be what wrote the heartbeats.
            handler: async (_, { signal }) => {
              if (++jobs < 9) return { kind: 'completed' };
              await new Promise((resolve) => signal.addEventListener('abort', resolve));
              return { kind: 'completed' };
            },
          }),
        ],
        drainTimeoutMs: 0,
      });
      let beats = 0;
      pool.events.on('heartbeat', () => beats++);
      await pool.start();
      await until('two cycles', () => beats >= 3);
      await pool.stop();
    });

    it('that fail do not stop the work', async () => {
      await queue.enqueue({ key: 'unheard', payload: { label: '' } });
      const failing = {
        write: () => Promise.reject(new Error('no')),
      } as unknown as WorkerHeartbeatRepository;
      const handler = () => Promise.resolve({ kind: 'completed' } as const);
      const pool = testPool({ heartbeats: failing, sources: [parcelSource({ queue, handler })] });
      const completed = waitFor(pool, 'completed');
      await pool.start();
      await completed;
      await pool.stop();
    });
  });
});
