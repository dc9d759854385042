import type { MongoWorkerQueue } from '../../../src/queue/mongo-worker-queue';
import type { JobHandler } from '../../../src/worker/job-handler';
import type { WorkerHeartbeatRepository } from '../../../src/worker/worker-heartbeats';
import type { WorkerPool } from '../../../src/worker/worker-pool';
import { openTestDatabase, type TestDatabase } from '../../support/database';
import { parcelQueue, parcels, type Parcel } from '../../support/queue-fixture';
import { heartbeatRepository, parcelSource, testPool, until, waitFor } from '../../support/worker-fixture';

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));

describe('draining', () => {
  let database: TestDatabase;
  let heartbeats: WorkerHeartbeatRepository;
  let queue: MongoWorkerQueue<Parcel>;
  let pool: WorkerPool;

  const start = async (handler: JobHandler<Parcel>, options: object = {}): Promise<void> => {
    pool = testPool({ sources: [parcelSource({ queue, handler })], heartbeats, ...options });
    await pool.start();
  };
  const stored = (key: string) => parcels(database.connection).findOne({ key });

  beforeAll(async () => {
    database = await openTestDatabase();
    heartbeats = await heartbeatRepository(database.connection);
    queue = await parcelQueue(database.connection);
  });
  afterEach(async () => {
    await pool.stop();
    await parcels(database.connection).deleteMany({});
  });
  afterAll(() => database.close());

  it('lets the job in hand finish, renewing its lease meanwhile, and claims nothing more', async () => {
    const leaseMs = 750;
    const shortLeases = await parcelQueue(database.connection, 'Parcel', { leaseMs });
    await queue.enqueueMany(['long', 'next'].map((key) => ({ key, payload: { label: key } })));
    let finish = (): void => undefined;
    const handler: JobHandler<Parcel> = async () => {
      await new Promise<void>((resolve) => {
        finish = resolve;
      });
      return { kind: 'completed' };
    };
    await start(handler, { sources: [parcelSource({ queue: shortLeases, handler })] });
    await waitFor(pool, 'claimed');
    await until('the handler runs', () => pool.busy === 1);
    const order: string[] = [];
    pool.events.on('completed', () => order.push('completed'));
    pool.events.on('heartbeat', ({ status }) => order.push(status));
    const stopped = pool.stop();
    // Two leases on, somebody would have got it without the renewals.
    const firstExpiry = (await stored('long'))!.lease!.expiresAt.getTime();
    await until(
      'renewed',
      async () => (await stored('long'))!.lease!.expiresAt.getTime() > firstExpiry + 2 * leaseMs,
    );
    expect(await queue.claim({ workerId: pool.workerId, lane: 99 })).toMatchObject({
      kind: 'claimed',
      claimed: { job: { key: 'next' } },
    });
    finish();
    await stopped;
    expect(order).toEqual(['draining', 'completed', 'stopped']);
    expect(await stored('long')).toMatchObject({ phase: 'done', attempts: 1 });
    expect(pool.healthy).toBe(false);
    expect(pool.busy).toBe(0);
  });

  it('aborts at the deadline and hands the job back, claimable at once', async () => {
    await queue.enqueue({ key: 'k', payload: { label: 'k' } });
    await start(
      async (_, { signal }) => {
        await aborted(signal);
        throw new Error('cut off');
      },
      { drainTimeoutMs: 20 },
    );
    await waitFor(pool, 'claimed');
    await pool.stop();
    expect(await stored('k')).toMatchObject({ phase: 'ready', lease: null, attempts: 1, errors: [] });
  });

  it('hands back even the job of a handler that ignores its abort', async () => {
    await queue.enqueue({ key: 'k', payload: { label: 'k' } });
    await start(() => new Promise(() => undefined), { drainTimeoutMs: 10, abortGraceMs: 10 });
    await waitFor(pool, 'claimed');
    await pool.stop();
    expect(await stored('k')).toMatchObject({ phase: 'ready', lease: null });
  });

  it('does not make a dead letter of a job on its last attempt', async () => {
    await queue.enqueue({ key: 'k', payload: { label: 'k' }, maxAttempts: 1 });
    await start(
      async (_, { signal }) => {
        await aborted(signal);
        throw new Error('cut off');
      },
      { drainTimeoutMs: 10 },
    );
    await waitFor(pool, 'claimed');
    await pool.stop();
    expect(await stored('k')).toMatchObject({ phase: 'ready', attempts: 0 });
  });

  it('keeps what the handler finished in spite of the abort', async () => {
    await queue.enqueue({ key: 'k', payload: { label: 'k' } });
    await start(
      async (_, { signal }) => {
        await aborted(signal);
        return { kind: 'completed', patch: { note: 'just in time' } };
      },
      { drainTimeoutMs: 10 },
    );
    await waitFor(pool, 'claimed');
    await pool.stop();
    expect(await stored('k')).toMatchObject({ phase: 'done', note: 'just in time' });
  });

  it('gives back, unused, what a claim on its way brings in after the stop', async () => {
    await queue.enqueue({ key: 'k', payload: { label: 'k' } });
    let started = false;
    pool = testPool({
      heartbeats,
      sources: [
        parcelSource({
          queue: new Proxy(queue, {
            get: (target, name) => {
              const member: unknown = Reflect.get(target, name);
              if (name === 'claim') {
                return async (...args: Parameters<typeof queue.claim>) => {
                  const claim = await target.claim(...args);
                  if (claim.kind === 'claimed') void pool.stop();
                  return claim;
                };
              }
              return typeof member === 'function' ? (member.bind(target) as unknown) : member;
            },
          }),
          handler: () => {
            started = true;
            return Promise.resolve({ kind: 'completed' });
          },
        }),
      ],
    });
    const released = waitFor(pool, 'released');
    await pool.start();
    await released;
    await pool.stop();
    expect(started).toBe(false);
    expect(await stored('k')).toMatchObject({ phase: 'ready', attempts: 0 });
  });

  it('may be asked for twice, and before anything was started', async () => {
    await start(() => Promise.resolve({ kind: 'completed' }));
    await Promise.all([pool.stop(), pool.stop()]);
    const unstarted = testPool({ sources: [], heartbeats });
    await unstarted.stop();
  });

  it('leaves no listener and no timer behind in 50 starts and stops', async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error): void => {
      warnings.push(warning);
    };
    process.on('warning', onWarning);
    const before = process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
    for (let i = 0; i < 50; i++) {
      await start(() => Promise.resolve({ kind: 'completed' }));
      await pool.stop();
    }
    process.off('warning', onWarning);
    expect(warnings).toEqual([]);
    expect(process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length).toBeLessThanOrEqual(
      before + 2,
    );
  });
});
