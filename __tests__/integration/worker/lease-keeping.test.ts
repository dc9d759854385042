import mongoose, { type Connection } from 'mongoose';
import type { MongoWorkerQueue } from '../../../src/queue/mongo-worker-queue';
import type { WorkerHeartbeatRepository } from '../../../src/worker/worker-heartbeats';
import type { WorkerPool } from '../../../src/worker/worker-pool';
import type { JobHandler } from '../../../src/worker/job-handler';
import { openTestDatabase, type TestDatabase } from '../../support/database';
import { parcelModel, parcelQueue, parcels, stealLease, type Parcel } from '../../support/queue-fixture';
import { FaultyProxy } from '../../support/queue-proxy';
import { heartbeatRepository, parcelSource, testPool, until, waitFor } from '../../support/worker-fixture';

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));

describe('a worker and its leases', () => {
  let database: TestDatabase;
  let heartbeats: WorkerHeartbeatRepository;
  let queue: MongoWorkerQueue<Parcel>;
  const pools: WorkerPool[] = [];
  const cleanups: (() => Promise<unknown>)[] = [];

  const start = async (
    handler: JobHandler<Parcel>,
    on: {
      queue?: MongoWorkerQueue<Parcel>;
      heartbeats?: WorkerHeartbeatRepository;
      drainTimeoutMs?: number;
      abortGraceMs?: number;
    } = {},
  ): Promise<WorkerPool> => {
    const { queue: its = queue, heartbeats: beats = heartbeats, ...options } = on;
    const pool = testPool({
      sources: [parcelSource({ queue: its, handler, lanes: 2 })],
      heartbeats: beats,
      ...options,
    });
    pools.push(pool);
    await pool.start();
    return pool;
  };

  beforeAll(async () => {
    database = await openTestDatabase();
    heartbeats = await heartbeatRepository(database.connection);
    queue = await parcelQueue(database.connection, 'Parcel', { leaseMs: 450 });
  });
  afterEach(async () => {
    await Promise.all(pools.splice(0).map((pool) => pool.stop()));
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
    await parcels(database.connection).deleteMany({});
  });
  afterAll(() => database.close());

  it('keeps a job of four leases to itself, and renews all it holds in one beat', async () => {
    // Twice as long as elsewhere here: on a busy machine a beat may well be late by a short lease.
    const queue = await parcelQueue(database.connection, 'Parcel', { leaseMs: 900 });
    await queue.enqueueMany(['a', 'b'].map((key) => ({ key, payload: { label: key } })));
    let beats = 0;
    let starts = 0;
    let finish = (): void => undefined;
    const finished = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const pool = await start(
      async () => {
        starts++;
        await finished;
        return { kind: 'completed' };
      },
      { queue },
    );
    pool.events.on('renewed', ({ count }) => {
      if (count === 2) beats++;
      if (beats === 12) finish();
    });
    const rival = await start(() => Promise.resolve({ kind: 'completed' }), { queue });
    rival.events.on('claimed', () => starts++);
    await Promise.all([
      waitFor(pool, 'completed', () => true),
      until(
        'both done',
        async () => (await parcels(database.connection).countDocuments({ phase: 'done', attempts: 1 })) === 2,
      ),
    ]);
    expect(starts).toBe(2);
  });

  it('aborts the step and writes nothing once the lease is lost', async () => {
    await queue.enqueue({ key: 'k', payload: { label: 'k' } });
    const late: unknown[] = [];
    const pool = await start(async ({ lease }, { signal }) => {
      await stealLease(database.connection, lease.jobId);
      await aborted(signal);
      late.push(await queue.record(lease, { note: 'zombie' }));
      return { kind: 'completed', patch: { note: 'zombie' } };
    });
    await waitFor(pool, 'lease_lost');
    expect(late).toEqual([{ kind: 'lease_lost' }]);
    const job = await queue.findByKey('k');
    expect(job).toMatchObject({ phase: 'leased', lease: { token: 'stolen' } });
    expect(job?.note).toBeUndefined();
  });

  it('moves on when the handler ignores its abort', async () => {
    await queue.enqueueMany(['deaf 0', 'deaf 1', 'next'].map((key) => ({ key, payload: { label: key } })));
    const pool = await start(
      async ({ job, lease }) => {
        if (job.key === 'next') return { kind: 'completed' };
        await stealLease(database.connection, lease.jobId);
        return new Promise(() => undefined);
      },
      { abortGraceMs: 20 },
    );
    await waitFor(pool, 'completed');
    expect(await queue.findByKey('next')).toMatchObject({ phase: 'done' });
  });

  describe('behind a faulty network', () => {
    let proxy: FaultyProxy;
    let connection: Connection;
    let far: MongoWorkerQueue<Parcel>;
    let farHeartbeats: WorkerHeartbeatRepository;

    beforeEach(async () => {
      proxy = await FaultyProxy.before(database.uri);
      cleanups.push(() => proxy.close());
      connection = await mongoose.createConnection(proxy.uri).asPromise();
      cleanups.push(() => connection.close(true));
      parcelModel(connection);
      far = await parcelQueue(connection, 'Parcel', { leaseMs: 450 });
      farHeartbeats = await heartbeatRepository(connection);
    });

    it('aborts itself before its lease ends when the database hangs', async () => {
      await queue.enqueue({ key: 'k', payload: { label: 'k' } });
      let lease: { deadlineMs: number } | undefined;
      let abortedAtMs = 0;
      const pool = await start(
        async (claimed, { signal }) => {
          lease = claimed.lease;
          proxy.stall();
          await aborted(signal);
          abortedAtMs = performance.now();
          return { kind: 'completed' };
        },
        { queue: far, heartbeats: farHeartbeats, drainTimeoutMs: 0, abortGraceMs: 0 },
      );
      const lost = waitFor(pool, 'lease_lost');
      await lost;
      expect(abortedAtMs).toBeGreaterThanOrEqual(lease!.deadlineMs);
      expect(abortedAtMs).toBeLessThan(lease!.deadlineMs + 500);
      proxy.down();
    });

    it('outlives an outage: says so, works on when it is over, and loses no job', async () => {
      await queue.enqueueMany(
        Array.from({ length: 10 }, (_, i) => ({ key: `k${i}`, payload: { label: '' } })),
      );
      const completed: string[] = [];
      const pool = await start(
        async ({ job }) => {
          completed.push(job.key);
          if (completed.length === 4) proxy.down();
          return Promise.resolve({ kind: 'completed' });
        },
        { queue: far, heartbeats: farHeartbeats },
      );
      await waitFor(pool, 'outage', ({ during }) => during === 'claim' || during === 'settling');
      expect(pool.healthy).toBe(false);
      proxy.up();
      await until(
        'all done',
        async () => (await parcels(database.connection).countDocuments({ phase: 'done' })) === 10,
      );
      expect(pool.healthy).toBe(true);
    });

    it('writes an outcome once the database is back, as long as its lease stands', async () => {
      far = await parcelQueue(connection, 'Parcel', { leaseMs: 30_000 });
      await queue.enqueue({ key: 'k', payload: { label: 'k' } });
      const pool = await start(
        () => {
          proxy.down();
          return Promise.resolve({ kind: 'completed', patch: { note: 'kept' } });
        },
        { queue: far, heartbeats: farHeartbeats },
      );
      await waitFor(pool, 'outage', ({ during }) => during === 'settling');
      proxy.up();
      await waitFor(pool, 'completed');
      expect(await queue.findByKey('k')).toMatchObject({ phase: 'done', note: 'kept', attempts: 1 });
    });
  });
});
