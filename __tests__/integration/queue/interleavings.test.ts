import fc from 'fast-check';
import type { DeadLetterRepository } from '../../../src/queue/dead-letters';
import type { DeadLetterProjector } from '../../../src/queue/dead-letter-projector';
import type { MongoWorkerQueue } from '../../../src/queue/mongo-worker-queue';
import type { Lease } from '../../../src/queue/worker-queue';
import { openTestDatabase, type TestDatabase } from '../../support/database';
import { claimant, expireLease, parcelQueue, parcels, type Parcel } from '../../support/queue-fixture';
import { deadLetterRepository, parcelProjector } from '../../support/worker-fixture';

const KEYS = ['a', 'b', 'c'];
const MAX_ATTEMPTS = 2;
const failure = { code: 'X', message: '', kind: 'transient', retryable: true } as const;

/** One step of a schedule. `pick` chooses among all leases ever handed out, so most writes come from zombies. */
type Step =
  | { do: 'enqueue' | 'claim' | 'tidy' | 'project'; pick: number }
  | { do: 'expire' | 'renew' | 'complete' | 'retry' | 'refund' | 'kill' | 'replay'; pick: number };

const step: fc.Arbitrary<Step> = fc.record({
  do: fc.constantFrom(
    ...([
      'enqueue',
      'claim',
      'claim',
      'tidy',
      'project',
      'expire',
      'renew',
      'complete',
      'retry',
      'refund',
      'kill',
      'replay',
    ] as const),
  ),
  pick: fc.nat(1000),
});

/** What a job may be, by everything the queue has answered so far. */
interface Model {
  live: string | undefined;
  terminal: 'done' | 'dead' | undefined;
  replays: number;
  epoch: number;
}

describe('any interleaving of the queue’s calls', () => {
  let database: TestDatabase;
  let queue: MongoWorkerQueue<Parcel>;
  let records: DeadLetterRepository;
  let projector: DeadLetterProjector<Parcel>;

  beforeAll(async () => {
    database = await openTestDatabase();
    queue = await parcelQueue(database.connection, 'Parcel', { maxAttempts: MAX_ATTEMPTS });
    records = await deadLetterRepository(database.connection);
    projector = parcelProjector(queue, records);
  });
  afterAll(() => database.close());

  const run = async (batches: Step[][]): Promise<void> => {
    await parcels(database.connection).deleteMany({});
    await database.connection.collection('deadLetteredRequests').deleteMany({});
    const models = new Map<string, Model>();
    const leases: { key: string; lease: Lease }[] = [];
    const completions = new Map<string, number>();

    const apply = async ({ do: what, pick }: Step): Promise<void> => {
      const key = KEYS[pick % KEYS.length]!;
      const held = leases.length === 0 ? undefined : leases[pick % leases.length];
      switch (what) {
        case 'enqueue':
          await queue.enqueue({ key, payload: { label: key } });
          return;
        case 'claim': {
          const claim = await queue.claim(claimant(`w${pick}`, pick));
          if (claim.kind === 'claimed')
            leases.push({ key: claim.claimed.job.key, lease: claim.claimed.lease });
          return;
        }
        case 'tidy':
          await queue.tidy();
          return;
        case 'project':
          await projector.projectPending();
          return;
        case 'replay': {
          const job = await queue.findByKey(key);
          if (job !== null) await projector.replay(job._id.toHexString());
          return;
        }
      }
      if (held === undefined) return;
      const { lease } = held;
      switch (what) {
        case 'expire':
          await expireLease(database.connection, lease.jobId).catch(() => undefined);
          return;
        case 'renew':
          await queue.renew([lease]);
          return;
        case 'complete': {
          const { kind } = await queue.complete(lease);
          if (kind === 'completed') completions.set(lease.token, lease.epoch);
          return;
        }
        case 'retry':
          await queue.release(lease, { delayMs: 0, failure });
          return;
        case 'refund':
          await queue.release(lease, { delayMs: 0, refundAttempt: true });
          return;
        case 'kill':
          await queue.deadLetter(lease, failure);
      }
    };

    const check = async (): Promise<void> => {
      for (const job of await parcels(database.connection).find().toArray()) {
        const before = models.get(job.key) ?? { live: undefined, terminal: undefined, replays: 0, epoch: 0 };
        // The fence never goes back.
        expect(job.epoch).toBeGreaterThanOrEqual(before.epoch);
        // Terminal stays terminal: done for good, dead until a replay.
        if (before.terminal === 'done') expect(job.phase).toBe('done');
        if (before.terminal === 'dead' && job.phase !== 'dead')
          expect(job.replays).toBeGreaterThan(before.replays);
        expect(job.attempts).toBeLessThanOrEqual(MAX_ATTEMPTS);
        expect(job.attempts).toBeGreaterThanOrEqual(0);
        // A lease exactly while leased, and its token is the last that was handed out.
        expect(job.lease !== null).toBe(job.phase === 'leased');
        if (job.lease !== null) {
          const mine = leases.filter(({ key }) => key === job.key);
          const newest = mine.reduce((a, b) => (b.lease.epoch > a.lease.epoch ? b : a));
          expect(job.lease.token).toBe(newest.lease.token);
        }
        models.set(job.key, {
          live: job.lease?.token,
          terminal: job.phase === 'done' || job.phase === 'dead' ? job.phase : undefined,
          replays: job.replays,
          epoch: job.epoch,
        });
      }
      // Each claim has its own epoch, so no two leases of one job can pass for each other.
      const epochs = leases.map(({ key, lease }) => `${key} ${lease.epoch}`);
      expect(new Set(epochs).size).toBe(epochs.length);
    };

    for (const batch of batches) {
      await Promise.all(batch.map(apply));
      await check();
    }

    // None is lost: whatever happened, everything can still be brought to an end, and the records agree with the jobs.
    const done = (): Promise<number> =>
      parcels(database.connection).countDocuments({ phase: { $in: ['done', 'dead'] } });
    const all = await parcels(database.connection).countDocuments();
    for (let rounds = 0; (await done()) < all && rounds < 20; rounds++) {
      for (const job of await parcels(database.connection).find({ phase: 'leased' }).toArray()) {
        await expireLease(database.connection, job._id.toHexString());
      }
      const claim = await queue.claim(claimant('closer'));
      if (claim.kind === 'claimed') await queue.complete(claim.claimed.lease);
    }
    expect(await done()).toBe(all);
    await projector.projectPending();
    const deadKeys = (await parcels(database.connection).find({ phase: 'dead' }).toArray()).map(
      ({ key }) => key,
    );
    const { records: open } = await records.listOpen({ limit: 10 });
    expect(open.map(({ requestId }) => requestId).sort()).toEqual(deadKeys.sort());
  };

  it('keeps one live token, bounded attempts and final endings, one call at a time', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25 }), (steps) =>
        run(steps.map((one) => [one])),
      ),
      { numRuns: 15 },
    );
  });

  it('and with up to five calls at the same time', async () => {
    const batch = fc.array(step, { minLength: 1, maxLength: 5 });
    await fc.assert(fc.asyncProperty(fc.array(batch, { minLength: 3, maxLength: 8 }), run), { numRuns: 15 });
  });
});
