import { systemClock } from '../../../src/platform/clock';
import { makeWorkerId } from '../../../src/platform/ids';
import { silentLogger } from '../../../src/platform/logger';
import { onlyJob } from '../../../src/queue/claim-scope';
import { GlobalSlots } from '../../../src/randomness/processing/global-slots';
import type { HeldJob } from '../../../src/randomness/jobs/job-state-manager';
import { LocalSlots, type ProcessingSlot } from '../../../src/randomness/processing/processing-slots';
import { captureLogger } from '../../support/capture-logger';
import { openRandomness, type RandomnessFixture } from '../../support/randomness-fixture';
import { heartbeatRepository, testPool, until, waitFor } from '../../support/worker-fixture';

const log = captureLogger();
let world: RandomnessFixture;
beforeAll(async () => {
  world = await openRandomness(
    { QUEUE_MAX_CONCURRENCY: '4', QUEUE_HIGH_PRIORITY_RESERVED: '2', QUEUE_LEASE_MS: '1000' },
    { logger: log.logger },
  );
});
afterAll(() => world.close());

const claimant = (lane = 0) => ({ workerId: makeWorkerId(), lane });

async function hold(requestId: string): Promise<HeldJob> {
  const job = await world.job(requestId);
  const claim = await world.pipeline.queue.claim(claimant(), onlyJob(job._id.toHexString()));
  if (claim.kind === 'empty') throw new Error(`${requestId} is not free`);
  return claim.claimed;
}

describe('the job state manager', () => {
  it('makes one job of one request, however often and from wherever it is asked', async () => {
    const other = await world.openAnother();
    const results = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        (index % 2 === 0 ? world.pipeline : other).service.submit({
          requestId: 'once',
          raffleId: 1,
          source: 'api',
        }),
      ),
    );
    expect(results.filter(({ alreadyThere }) => !alreadyThere)).toHaveLength(1);
    expect(await world.path('once')).toEqual([]);
  });

  it('moves under the lease, takes a same-state move as done and refuses an illegal one', async () => {
    await world.submit('moves', 1);
    const held = await hold('moves');
    const { states } = world.pipeline;
    expect(await states.transitionState(held, 'queued')).toEqual({ kind: 'already' });
    expect(await states.transitionState(held, 'confirmed')).toEqual({
      kind: 'illegal',
      fromState: 'queued',
      toState: 'confirmed',
    });
    expect(log.text()).toContain('queued → confirmed is not a legal transition');
    expect(await states.transitionState(held, 'generating', 'A slot is free')).toEqual({ kind: 'moved' });
    expect(await states.incrementAttempt(held)).toEqual({ kind: 'counted', maxReached: false });
    expect(await states.incrementAttempt(held)).toEqual({ kind: 'counted', maxReached: false });
    expect(await world.job('moves')).toMatchObject({ currentState: 'generating', attemptCount: 1 });
  });

  it('lets a holder that lost its lease write nothing', async () => {
    await world.submit('lost', 1);
    const zombie = await hold('lost');
    await world.pipeline.queue.release(zombie.lease, { delayMs: 0 });
    const heir = await hold('lost');
    const { states } = world.pipeline;
    expect(await states.transitionState(zombie, 'generating')).toEqual({ kind: 'lease_lost' });
    expect(await states.incrementAttempt(zombie)).toEqual({ kind: 'lease_lost' });
    expect(await states.record(zombie, { ledger: 7 })).toEqual({ kind: 'lease_lost' });
    expect(await states.transitionState(heir, 'generating')).toEqual({ kind: 'moved' });
    expect(await world.job('lost')).toMatchObject({ currentState: 'generating', ledger: null });
  });

  it('has the specified back-off curve', () => {
    const { states } = world.pipeline;
    expect([1, 2, 3, 4, 5, 6, 60].map((attempt) => states.calculateBackoff(attempt))).toEqual([
      2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000,
    ]);
  });

  it('counts by state, lists by state in pages, and removes what ended long ago', async () => {
    const own = await openRandomness();
    try {
      for (let raffle = 1; raffle <= 7; raffle++) {
        own.chain.drawing(raffle);
        await own.submit(`r${raffle}`, raffle);
      }
      const { states } = own.pipeline;
      await until('the figures follow', async () => (await states.getMetrics()).queuedCount === 7);
      expect(await states.getMetrics()).toMatchObject({ pendingCount: 7, confirmedCount: 0 });
      for (const id of ['r1', 'r2']) await own.tryOnce(id);
      const other = await own.openAnother();
      await until(
        'another process sees the same',
        async () => (await other.states.getMetrics()).queuedCount === 5,
      );
      expect(await other.states.getMetrics()).toMatchObject({ confirmedCount: 2, pendingCount: 5 });

      const first = await states.getJobsByState('queued', { limit: 3 });
      const second = await states.getJobsByState('queued', { limit: 3, after: first.next! });
      expect([...first.jobs, ...second.jobs].map(({ requestId }) => requestId)).toEqual([
        'r3',
        'r4',
        'r5',
        'r6',
        'r7',
      ]);
      expect(second.next).toBeNull();

      expect(await states.cleanupOldJobs(60_000)).toBe(0);
      expect(await states.cleanupOldJobs(0)).toBe(2);
      expect((await states.getJobsByState('confirmed', { limit: 3 })).jobs).toEqual([]);
      expect((await states.getJobsByState('queued', { limit: 9 })).jobs).toHaveLength(5);
    } finally {
      await own.close();
    }
  });
});

describe('slots of one process', () => {
  it('count generating, submitting and confirming; a refusal costs no attempt', async () => {
    const own = await openRandomness({ QUEUE_MAX_CONCURRENCY: '1', QUEUE_HIGH_PRIORITY_RESERVED: '0' });
    try {
      own.chain.drawing(1);
      own.chain.drawing(2);
      await own.submit('busy', 1);
      await own.submit('waits', 2);
      let open: () => void = () => undefined;
      own.chain.scripts.prepare.push(
        () => new Promise((_, reject) => (open = () => reject(new Error('let go')))),
      );
      const busy = own.tryOnce('busy');
      await until('the first job submits', async () => (await own.job('busy')).currentState === 'submitting');
      expect(own.pipeline.states.canAcquireProcessingSlot()).toBe(false);
      for (let refusal = 0; refusal < 7; refusal++) {
        expect(await own.tryOnce('waits')).toMatchObject({ ending: 'released' });
      }
      expect(await own.job('waits')).toMatchObject({
        currentState: 'queued',
        attempts: 0,
        attemptCount: 0,
        errors: [],
      });
      // Nothing is even claimed while no slot is free.
      expect(await own.pipeline.queue.claim(claimant())).toEqual({ kind: 'empty' });
      open();
      await busy;
      expect(own.pipeline.states.canAcquireProcessingSlot()).toBe(true);
      expect(await own.tryOnce('waits')).toMatchObject({ ending: 'completed' });
    } finally {
      await own.close();
    }
  });

  it('keeps the reserved ones for high priority', async () => {
    const slots = new LocalSlots({ max: 4, reservedForUrgent: 2 });
    const low = [await slots.acquire(false), await slots.acquire(false)];
    expect(await slots.acquire(false)).toBeNull();
    expect(slots.canAcquire(true)).toBe(true);
    expect(await slots.acquire(true)).not.toBeNull();
    expect(await slots.acquire(true)).not.toBeNull();
    expect(await slots.acquire(true)).toBeNull();
    await low[0]!.release();
    await low[0]!.release();
    expect(slots.held).toBe(3);
  });

  it('never lets a flood of small raffles delay a large one', async () => {
    const own = await openRandomness({ QUEUE_MAX_CONCURRENCY: '3', QUEUE_HIGH_PRIORITY_RESERVED: '1' });
    const release: (() => void)[] = [];
    try {
      for (let raffle = 1; raffle <= 40; raffle++) {
        own.chain.drawing(raffle);
        await own.submit(`small-${raffle}`, raffle);
        own.chain.scripts.confirm.push(
          () => new Promise((_, reject) => release.push(() => reject(new Error('let go')))),
        );
      }
      const pool = testPool({
        sources: own.pipeline.work,
        heartbeats: await heartbeatRepository(own.connection),
      });
      await pool.start();
      await until('the small ones fill their slots', () => release.length === 2);
      own.chain.drawing(99, 20_000);
      own.chain.scripts.confirm.length = 0;
      const delivered = waitFor(pool, 'completed');
      await own.submit('large', 99, { prizeXlm: 20_000 });
      pool.wake();
      const [{ jobId }] = await delivered;
      expect((await own.job('large'))._id.toHexString()).toBe(jobId);
      expect(release).toHaveLength(2);
      own.chain.scripts.confirm.length = 0;
      release.forEach((letGo) => letGo());
      await pool.stop();
    } finally {
      await own.close();
    }
  });
});

describe('slots of one process', () => {
  it('keep some for high priority, and urgent jobs keep no ordinary one out for good', async () => {
    const slots = new LocalSlots({ max: 4, reservedForUrgent: 1 });
    const urgent = await Promise.all(Array.from({ length: 4 }, () => slots.acquire(true)));
    expect(urgent).not.toContain(null);
    expect(slots.canAcquire(true)).toBe(false);
    // The next that is freed is anybody's, whichever urgent jobs hold the rest.
    await urgent[0]!.release();
    expect(slots.canAcquire(false)).toBe(true);
    for (const slot of urgent.slice(1)) await slot!.release();
    const ordinary = await Promise.all(Array.from({ length: 4 }, () => slots.acquire(false)));
    expect(ordinary.filter(Boolean)).toHaveLength(3);
    expect(slots.canAcquire(true)).toBe(true);
    await ordinary[0]!.release();
    await ordinary[0]!.release();
    expect(slots.held).toBe(2);
  });
});

describe('slots of all processes', () => {
  const openSlots = async (max: number, leaseMs: number, reservedForUrgent = 0): Promise<GlobalSlots> => {
    const slots = new GlobalSlots({
      connection: world.connection,
      local: new LocalSlots({ max: 100, reservedForUrgent: 0 }),
      limit: { max, reservedForUrgent },
      workerId: makeWorkerId(),
      leaseMs,
      clock: systemClock,
      logger: silentLogger(),
    });
    await slots.ensureSlots();
    return slots;
  };
  beforeEach(() => world.connection.db!.collection('randomnessSlots').deleteMany({}));

  it('are never more than the limit, whoever asks', async () => {
    const [a, b] = [await openSlots(3, 5000), await openSlots(3, 5000)];
    const got = await Promise.all(
      Array.from({ length: 12 }, (_, index) => (index % 2 ? a : b).acquire(false)),
    );
    const held = got.filter((slot): slot is ProcessingSlot => slot !== null);
    expect(held).toHaveLength(3);
    await Promise.all(held.map((slot) => slot.release()));
    expect(await b.acquire(false)).not.toBeNull();
    a.close();
    b.close();
  });

  it('keep some for high priority', async () => {
    const slots = await openSlots(3, 5000, 1);
    expect(
      [await slots.acquire(false), await slots.acquire(false), await slots.acquire(false)].filter(Boolean),
    ).toHaveLength(2);
    // Refused a moment ago: no lane claims another ordinary job that there is no slot for.
    expect([slots.canAcquire(false), slots.canAcquire(true)]).toEqual([false, true]);
    expect(await slots.acquire(true)).not.toBeNull();
    expect(await slots.acquire(true)).toBeNull();
    slots.close();
  });

  it('are an ordinary job’s too while urgent ones hold the rest', async () => {
    const [a, b] = [await openSlots(3, 5000, 1), await openSlots(3, 5000, 1)];
    const urgent = [await a.acquire(true), await b.acquire(true), await a.acquire(true)];
    expect(await b.acquire(false)).toBeNull();
    await urgent[0]!.release();
    expect(await b.acquire(false)).not.toBeNull();
    a.close();
    b.close();
  });

  it('are renewed while held and leak none when their holder dies', async () => {
    const [alive, dying] = [await openSlots(2, 600), await openSlots(2, 600)];
    const kept = await alive.acquire(false);
    await dying.acquire(false);
    // What a crash does: nothing is renewed any more.
    dying.close();
    let heirs: ProcessingSlot | null = null;
    await until('the dead one’s slot is free', async () => (heirs ??= await alive.acquire(false)) !== null);
    // The living one's slot is still its own, although more than a lease has passed.
    expect(await dying.acquire(false)).toBeNull();
    await kept!.release();
    await heirs!.release();
    alive.close();
  });
});
