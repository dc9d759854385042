import mongoose, { type Connection } from 'mongoose';
import { systemClock } from '../../../src/platform/clock';
import type { Failure } from '../../../src/platform/errors';
import { QueueJanitor } from '../../../src/queue/queue-janitor';
import { ServerClock } from '../../../src/queue/server-clock';
import type { MongoWorkerQueue } from '../../../src/queue/mongo-worker-queue';
import { openTestDatabase, type TestDatabase } from '../../support/database';
import {
  claimant,
  expireLease,
  mustClaim,
  parcelModel,
  parcelQueue,
  parcels,
  type Parcel,
} from '../../support/queue-fixture';
import { FaultyProxy } from '../../support/queue-proxy';

const HOUR_MS = 3_600_000;
const failure: Failure = { code: 'DOWN', message: '$down', kind: 'transient', retryable: true };

describe('leases', () => {
  let database: TestDatabase;
  let queue: MongoWorkerQueue<Parcel>;
  const stored = () => parcels(database.connection);
  const enqueue = (key: string, options: object = {}) =>
    queue.enqueue({ key, payload: { label: key }, ...options });

  beforeAll(async () => {
    database = await openTestDatabase();
    queue = await parcelQueue(database.connection);
  });
  afterEach(() => stored().deleteMany({}));
  afterAll(() => database.close());

  it('keep everyone else away until they run out, and then let one in', async () => {
    await enqueue('k');
    const first = await mustClaim(queue, claimant('w1'));
    expect(await queue.claim(claimant('w2'))).toEqual({ kind: 'empty' });
    await expireLease(database.connection, first.lease.jobId);
    const claims = await Promise.all([1, 2, 3, 4].map((i) => queue.claim(claimant(`w${i}`))));
    const won = claims.filter((claim) => claim.kind === 'claimed');
    expect(won).toHaveLength(1);
    const { job, lease } = won[0]!.claimed;
    expect(lease).toMatchObject({ attempt: 2, epoch: 2 });
    expect(job.errors).toMatchObject([{ code: 'WORKER_DIED', workerId: 'w1', attempt: 1, retryable: true }]);
    expect(job.errors[0]!.message).toContain('w1');
  });

  it.each([
    ['fast', HOUR_MS],
    ['slow', -HOUR_MS],
  ])('are neither stolen nor lost by a worker whose clock is an hour %s', async (_, offsetMs) => {
    const clock = { ...systemClock, now: () => Date.now() + offsetMs };
    const askew = await parcelQueue(database.connection, 'Parcel', { clock, leaseMs: 400 });
    await enqueue('live');
    const held = await mustClaim(queue, claimant('honest'));
    expect(await askew.claim(claimant('askew'))).toEqual({ kind: 'empty' });
    expect(await queue.complete(held.lease)).toEqual({ kind: 'completed' });

    await enqueue('later', { delayMs: 200 });
    expect(await askew.claim(claimant('askew'))).toEqual({ kind: 'empty' });
    let claim = await askew.claim(claimant('askew'));
    while (claim.kind === 'empty') claim = await askew.claim(claimant('askew'));
    const { lease, job } = claim.claimed;
    const claimedAtMs = job.lease!.expiresAt.getTime() - 400;
    expect(claimedAtMs - job.dueAt.getTime()).toBeGreaterThanOrEqual(0);
    expect(claimedAtMs - job.dueAt.getTime()).toBeLessThan(1000);

    // Held while renewed, by its own skewed worker, and taken over by another in time once it is not.
    expect(await askew.renew([lease])).toEqual({ lost: [] });
    const expiresAt = (await stored().findOne({ key: 'later' }))!.lease!.expiresAt;
    let next = await queue.claim(claimant('honest'));
    while (next.kind === 'empty') next = await queue.claim(claimant('honest'));
    const takenAtMs = next.claimed.job.lease!.expiresAt.getTime() - queue.leaseMs;
    expect(takenAtMs).toBeGreaterThanOrEqual(expiresAt.getTime());
    expect(takenAtMs - expiresAt.getTime()).toBeLessThan(1000);
  });

  it('refuse every late write of a zombie, which changes nothing', async () => {
    await enqueue('k');
    const zombie = await mustClaim(queue, claimant('zombie'));
    await expireLease(database.connection, zombie.lease.jobId);
    const owner = await mustClaim(queue, claimant('owner'));
    const before = await stored().findOne({ key: 'k' });

    const lost = { kind: 'lease_lost' };
    expect(await queue.record(zombie.lease, { note: 'zombie' })).toEqual(lost);
    expect(await queue.complete(zombie.lease, { note: 'zombie' })).toEqual(lost);
    expect(await queue.release(zombie.lease, { delayMs: 0, failure })).toEqual(lost);
    expect(await queue.release(zombie.lease, { delayMs: 0, refundAttempt: true })).toEqual(lost);
    expect(await queue.deadLetter(zombie.lease, failure, { note: 'zombie' })).toEqual(lost);
    expect(await queue.renew([zombie.lease])).toEqual({ lost: [zombie.lease] });
    expect(await stored().findOne({ key: 'k' })).toEqual(before);

    expect(await queue.complete(owner.lease, { note: 'owner' })).toEqual({ kind: 'completed' });
    expect(await queue.complete(zombie.lease)).toEqual(lost);
    expect(await stored().findOne({ key: 'k' })).toMatchObject({ phase: 'done', note: 'owner' });
  });

  it('tell apart two lanes of one worker', async () => {
    await enqueue('k');
    const first = await mustClaim(queue, claimant('w', 0));
    await expireLease(database.connection, first.lease.jobId);
    const second = await mustClaim(queue, claimant('w', 1));
    expect(await queue.complete(first.lease)).toEqual({ kind: 'lease_lost' });
    expect(await queue.complete(second.lease)).toEqual({ kind: 'completed' });
  });

  it('are renewed together, and the lost ones are named', async () => {
    await queue.enqueueMany(['a', 'b', 'c'].map((key) => ({ key, payload: { label: key } })));
    const claims = [await mustClaim(queue), await mustClaim(queue), await mustClaim(queue)];
    const leases = claims.map(({ lease }) => lease);
    const deadlines = leases.map(({ deadlineMs }) => deadlineMs);
    await expireLease(database.connection, leases[1]!.jobId);
    await mustClaim(queue, claimant('thief'));
    expect(await queue.renew(leases)).toEqual({ lost: [leases[1]] });
    expect(leases[0]!.deadlineMs).toBeGreaterThan(deadlines[0]!);
    expect(leases[1]!.deadlineMs).toBe(deadlines[1]);
    expect(await queue.renew([])).toEqual({ lost: [] });
  });

  it('survive the expiry as long as nobody took the job', async () => {
    await enqueue('k');
    const { lease } = await mustClaim(queue);
    await expireLease(database.connection, lease.jobId);
    expect(await queue.renew([lease])).toEqual({ lost: [] });
    expect(await queue.claim(claimant('other'))).toEqual({ kind: 'empty' });
  });

  describe('ending', () => {
    it('may be repeated by a caller who never got the reply', async () => {
      for (const key of ['done', 'back', 'dead']) {
        await enqueue(key);
        const { lease } = await mustClaim(queue);
        const end = {
          done: () => queue.complete(lease, { note: 1 }),
          back: () => queue.release(lease, { delayMs: HOUR_MS, failure }),
          dead: () => queue.deadLetter(lease, failure),
        }[key]!;
        const first = await end();
        const afterFirst = await stored().findOne({ key });
        expect(first.kind).not.toBe('lease_lost');
        expect(await end()).toEqual(first);
        expect(await stored().findOne({ key })).toEqual(afterFirst);
      }
    });

    it('does not pass for another ending', async () => {
      await enqueue('k');
      const { lease } = await mustClaim(queue);
      await queue.complete(lease);
      expect(await queue.deadLetter(lease, failure)).toEqual({ kind: 'lease_lost' });
      expect(await queue.release(lease, { delayMs: 0 })).toEqual({ kind: 'lease_lost' });
    });

    it('gives a postponed job its attempt and its place back', async () => {
      await enqueue('first');
      await enqueue('second');
      const { lease, job } = await mustClaim(queue);
      await queue.release(lease, { delayMs: 0, refundAttempt: true });
      expect(await stored().findOne({ key: job.key })).toMatchObject({
        attempts: 0,
        epoch: 1,
        order: job.order,
        errors: [],
      });
      expect((await mustClaim(queue)).job.key).toBe('first');
    });

    it('lets a job that may come back many times go behind what is due by then', async () => {
      await enqueue('first');
      await enqueue('second');
      const { lease } = await mustClaim(queue);
      await queue.release(lease, { delayMs: 0, refundAttempt: true, yieldsPlace: true });
      expect(await stored().findOne({ key: 'first' })).toMatchObject({ attempts: 0, phase: 'ready' });
      expect((await mustClaim(queue)).job.key).toBe('second');
      expect((await mustClaim(queue)).job.key).toBe('first');
    });

    it('makes a job due at once, and sooner than others, when it is hastened', async () => {
      await enqueue('first');
      await queue.enqueue({ key: 'later', payload: { label: 'later' }, delayMs: 600_000 });
      const { _id } = (await stored().findOne({ key: 'later' }))!;
      await queue.hasten(_id.toHexString(), 20);
      const { lease, job } = await mustClaim(queue);
      expect(job).toMatchObject({ key: 'first', priority: 0 });
      await queue.complete(lease);
      expect((await mustClaim(queue)).job).toMatchObject({ key: 'later', priority: 20 });
      // Held by a worker, it is nobody else's to hasten.
      await queue.hasten(_id.toHexString(), 99);
      expect(await stored().findOne({ key: 'later' })).toMatchObject({ phase: 'leased', priority: 20 });
    });

    it('on the last attempt is a dead letter, unless refunded', async () => {
      await enqueue('k', { maxAttempts: 1 });
      const first = await mustClaim(queue);
      expect(await queue.release(first.lease, { delayMs: 0, refundAttempt: true })).toEqual({
        kind: 'released',
      });
      const second = await mustClaim(queue);
      expect(await queue.release(second.lease, { delayMs: 0, failure })).toEqual({ kind: 'dead_lettered' });
      expect(await stored().findOne({ key: 'k' })).toMatchObject({
        phase: 'dead',
        attempts: 1,
        deadLetterPending: true,
      });
    });

    it('keeps the last ten errors', async () => {
      await enqueue('k', { maxAttempts: 50 });
      for (let i = 1; i <= 12; i++) {
        const { lease } = await mustClaim(queue);
        await queue.release(lease, { delayMs: 0, failure: { ...failure, code: `E${i}` } });
      }
      const { errors } = (await stored().findOne({ key: 'k' }))!;
      expect(errors.map(({ code }) => code)).toEqual(Array.from({ length: 10 }, (_, i) => `E${i + 3}`));
      expect(errors[9]).toMatchObject({ attempt: 12, message: '$down', workerId: 'w1' });
    });
  });

  describe('of a worker that died', () => {
    it('cost an attempt each, and the last one makes a dead letter', async () => {
      await enqueue('killer', { maxAttempts: 2 });
      for (const worker of ['w1', 'w2']) {
        const { lease } = await mustClaim(queue, claimant(worker));
        await expireLease(database.connection, lease.jobId);
      }
      expect(await queue.claim(claimant('w3'))).toEqual({ kind: 'empty' });
      expect(await stored().findOne({ key: 'killer' })).toMatchObject({
        phase: 'dead',
        attempts: 2,
        lease: null,
        deadLetterPending: true,
        errors: [
          { code: 'WORKER_DIED', workerId: 'w1' },
          { code: 'WORKER_DIED', workerId: 'w2' },
        ],
      });
    });

    it('are taken away only if they are still expired when it happens', async () => {
      for (const key of ['completed', 'renewed', 'dead worker']) await enqueue(key);
      const claims = [await mustClaim(queue), await mustClaim(queue), await mustClaim(queue)];
      for (const { lease } of claims) await expireLease(database.connection, lease.jobId);
      const real = stored();
      const pausing = new Proxy(real, {
        get: (target, name) => {
          if (name !== 'updateMany') {
            const member: unknown = Reflect.get(target, name);
            return typeof member === 'function' ? (member.bind(target) as unknown) : member;
          }
          return async (...args: Parameters<typeof real.updateMany>) => {
            await queue.complete(claims[0]!.lease);
            await queue.renew([claims[1]!.lease]);
            return target.updateMany(...args);
          };
        },
      });
      const model = database.connection.models['Parcel']!;
      const janitor = new QueueJanitor(() => pausing as never, new ServerClock(model, systemClock));
      expect(await janitor.tidy()).toEqual({ staged: 0, swept: 1 });
      expect(await real.findOne({ key: 'completed' })).toMatchObject({ phase: 'done' });
      expect(await real.findOne({ key: 'renewed' })).toMatchObject({ phase: 'leased' });
      expect(await real.findOne({ key: 'dead worker' })).toMatchObject({ phase: 'ready' });
    });

    it('are all swept and staged when many processes tidy at once, each job once', async () => {
      await queue.enqueueMany(
        Array.from({ length: 30 }, (_, i) => ({ key: `${i}`, payload: { label: '' } })),
      );
      const claims = await Promise.all(Array.from({ length: 30 }, () => mustClaim(queue)));
      for (const { lease } of claims) await expireLease(database.connection, lease.jobId);
      const tidied = await Promise.all(Array.from({ length: 6 }, () => queue.tidy()));
      expect(tidied.reduce((sum, { swept }) => sum + swept, 0)).toBe(30);
      expect(
        await stored().countDocuments({ phase: 'ready', attempts: 1, 'errors.1': { $exists: false } }),
      ).toBe(30);
    });
  });
});

describe('priority', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase();
  });
  afterAll(() => database.close());

  it('goes first but ages: an endless stream of high ones holds a low one up for a bounded time', async () => {
    const queue = await parcelQueue(database.connection, 'Aged', { priorityWeightMs: 100 });
    await queue.enqueue({ key: 'low', payload: { label: 'low' } });
    await queue.enqueue({ key: 'high', payload: { label: 'high' }, priority: 2 });
    expect((await mustClaim(queue)).job.key).toBe('high');
    const startedMs = performance.now();
    for (let i = 0; ; i++) {
      await queue.enqueue({ key: `high-${i}`, payload: { label: 'high' }, priority: 2 });
      if ((await mustClaim(queue)).job.key === 'low') break;
    }
    // Two steps of 100 ms each, and what the loop itself takes.
    expect(performance.now() - startedMs).toBeLessThan(1000);
  });
});

describe('a lost reply', () => {
  let database: TestDatabase;
  let proxy: FaultyProxy;
  let connection: Connection;
  let queue: MongoWorkerQueue<Parcel>;

  beforeAll(async () => {
    database = await openTestDatabase();
    await parcelQueue(database.connection);
    proxy = await FaultyProxy.before(database.uri);
    // Retries of the driver would hide the fault on servers that support them.
    connection = await mongoose.createConnection(`${proxy.uri}&retryWrites=false`).asPromise();
    parcelModel(connection);
    queue = await parcelQueue(connection);
  });
  afterEach(() => parcels(database.connection).deleteMany({}));
  afterAll(async () => {
    await connection.close();
    await proxy.close();
    await database.close();
  });

  it('of a claim does not lose the job: it is found by its token', async () => {
    await queue.enqueue({ key: 'k', payload: { label: 'k' } });
    const lost = proxy.loseReplyTo('findAndModify');
    const { lease } = await mustClaim(queue);
    await lost;
    expect(lease).toMatchObject({ attempt: 1, epoch: 1 });
    expect(await queue.complete(lease)).toEqual({ kind: 'completed' });
  });

  it('of a claim is settled by the same lane later, when the database went away with it', async () => {
    await queue.enqueue({ key: 'k', payload: { label: 'k' } });
    const lost = proxy.loseReplyTo('findAndModify').then(() => proxy.down());
    await expect(queue.claim(claimant('w', 3))).rejects.toThrow();
    await lost;
    proxy.up();
    const { lease } = await mustClaim(queue, claimant('w', 3));
    expect(lease).toMatchObject({ attempt: 1, epoch: 1 });
    expect(await queue.renew([lease])).toEqual({ lost: [] });
  });

  it('of a renewal does not cost a healthy worker its job', async () => {
    await queue.enqueue({ key: 'k', payload: { label: 'k' } });
    const { lease } = await mustClaim(queue);
    const before = (await parcels(database.connection).findOne({ key: 'k' }))!.lease!.expiresAt;
    const { deadlineMs } = lease;
    const lost = proxy.loseReplyTo('update');
    await expect(queue.renew([lease])).rejects.toThrow();
    await lost;
    const after = (await parcels(database.connection).findOne({ key: 'k' }))!.lease!.expiresAt;
    expect(after.getTime()).toBeGreaterThan(before.getTime());
    expect(lease.deadlineMs).toBe(deadlineMs);
    expect(await queue.complete(lease)).toEqual({ kind: 'completed' });
  });

  it('of a completion is answered as completed when the call is repeated', async () => {
    await queue.enqueue({ key: 'k', payload: { label: 'k' } });
    const { lease } = await mustClaim(queue);
    const lost = proxy.loseReplyTo('update');
    await expect(queue.complete(lease, { note: 'once' })).rejects.toThrow();
    await lost;
    expect(await queue.complete(lease, { note: 'once' })).toEqual({ kind: 'completed' });
  });

  it('of an enqueue is harmless: the repetition finds the job', async () => {
    const lost = proxy.loseReplyTo('findAndModify');
    await expect(queue.enqueue({ key: 'k', payload: { label: 'k' } })).rejects.toThrow();
    await lost;
    expect(await queue.enqueue({ key: 'k', payload: { label: 'k' } })).toMatchObject({
      kind: 'already_there',
    });
  });
});
