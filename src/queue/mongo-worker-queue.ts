import { randomUUID } from 'node:crypto';
import type { mongo } from 'mongoose';
import { Types } from 'mongoose';
import { systemClock, type Clock } from '../platform/clock';
import { isDuplicateKey, onlyDuplicateKeys, isReplyLost } from '../platform/database/faults';
import { verifyIndexes, type IndexedModel } from '../platform/database/indexes';
import { nativeCollection } from '../platform/database/native-collection';
import { PermanentError, type Failure } from '../platform/errors';
import type { LeaseToken, QueueEnvelope, SettledLease } from './envelope';
import { assertPayloadOnly, keyIndex, queueIndex } from './envelope-schema';
import { type ClaimScope, everythingReady } from './claim-scope';
import { QueueJanitor, type Tidied } from './queue-janitor';
import { ServerClock } from './server-clock';
import {
  claimPipeline,
  completeDeadPipeline,
  completePipeline,
  deadLetterPipeline,
  enqueuePipeline,
  hastenPipeline,
  recordPipeline,
  releasePipeline,
  renewPipeline,
  replayPipeline,
  spentFailure,
} from './update-pipelines';
import type {
  Claimant,
  ClaimResult,
  EnqueueRequest,
  EnqueueResult,
  Lease,
  PayloadPatch,
  ReleaseOptions,
  WorkerQueue,
  Written,
} from './worker-queue';

export interface MongoWorkerQueueOptions {
  /** A model whose schema went through `applyQueueEnvelope`. */
  model: IndexedModel;
  leaseMs: number;
  /** Attempts a job gets unless its enqueue says otherwise. */
  maxAttempts: number;
  /** What one step of priority is worth: it overtakes jobs that are due up to so much earlier, and none older. */
  priorityWeightMs?: number;
  /**
   * For keys that may come again after their job is gone: epochs of a new life begin above those of any old one, so that
   * what was fenced by the old ones (records, transactions) takes the new life for the later one. Default: epochs from 0.
   */
  isEpochFromClock?: boolean;
  clock?: Clock;
}

type ClaimedResult<Payload> = Extract<ClaimResult<Payload>, { kind: 'claimed' }>;

export type ReplayResult<Payload> =
  | { kind: 'replayed'; job: Payload & QueueEnvelope }
  | { kind: 'not_dead'; job: Payload & QueueEnvelope }
  | { kind: 'not_found' };

const DEFAULT_PRIORITY_WEIGHT_MS = 60_000;
/** The part of a lease that its holder doesn't use: for timers that fire late and writes on their way. */
const DEADLINE_MARGIN = 0.1;
const MAX_ENQUEUE_TRIES = 3;

/** The lease queue over one collection. */
export class MongoWorkerQueue<Payload extends object> implements WorkerQueue<Payload> {
  readonly leaseMs: number;
  readonly #options: MongoWorkerQueueOptions;
  readonly #clock: Clock;
  readonly #weightMs: number;
  readonly #janitor: QueueJanitor;
  /** Claims that were sent and not answered, one at most for a lane: the job may be ours. */
  readonly #doubtful = new Map<string, { token: LeaseToken; sentAtMs: number }>();

  constructor(options: MongoWorkerQueueOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#weightMs = options.priorityWeightMs ?? DEFAULT_PRIORITY_WEIGHT_MS;
    this.leaseMs = options.leaseMs;
    this.#janitor = new QueueJanitor(() => this.#collection, new ServerClock(options.model, this.#clock));
  }

  /** To be awaited before the first claim. @throws PermanentError INDEX_MISSING */
  verify(): Promise<void> {
    return verifyIndexes(this.#options.model);
  }

  async enqueue(request: EnqueueRequest<Payload>): Promise<EnqueueResult<Payload>> {
    const { key } = request;
    const _id = new Types.ObjectId();
    const pipeline = this.#enqueuePipeline(_id, request);
    for (let tries = 1; ; tries++) {
      try {
        const job = await this.#collection.findOneAndUpdate({ key }, pipeline, {
          upsert: true,
          returnDocument: 'after',
          hint: keyIndex,
        });
        if (job !== null)
          return { kind: job._id.equals(_id) ? 'enqueued' : 'already_there', job: this.#asJob(job) };
      } catch (error) {
        // Two upserts of one key can both miss the document; the unique index lets one through, the other looks again.
        if (!isDuplicateKey(error) || tries === MAX_ENQUEUE_TRIES) throw error;
      }
    }
  }

  /** Many at once, in one write; the results are in the order of the requests. */
  async enqueueMany(requests: readonly EnqueueRequest<Payload>[]): Promise<EnqueueResult<Payload>[]> {
    const offered = requests.map((request) => ({ request, _id: new Types.ObjectId() }));
    if (offered.length === 0) return [];
    try {
      await this.#collection.bulkWrite(
        offered.map(({ request, _id }) => ({
          updateOne: {
            filter: { key: request.key },
            update: this.#enqueuePipeline(_id, request),
            upsert: true,
            hint: queueIndex.key,
          },
        })),
        { ordered: false },
      );
    } catch (error) {
      if (!onlyDuplicateKeys(error)) throw error;
    }
    const stored = await this.#collection
      .find({ key: { $in: requests.map(({ key }) => key) } }, { hint: queueIndex.key })
      .toArray();
    const byKey = new Map(stored.map((job) => [job.key, job]));
    return offered.map(({ request, _id }) => {
      const job = byKey.get(request.key);
      if (job === undefined)
        throw new PermanentError('JOB_VANISHED', `job ${request.key} is gone right after its enqueue`);
      return { kind: job._id.equals(_id) ? 'enqueued' : 'already_there', job: this.#asJob(job) };
    });
  }

  async claim(claimant: Claimant, scope: ClaimScope = everythingReady): Promise<ClaimResult<Payload>> {
    const lane = `${claimant.workerId}/${claimant.lane}`;
    const doubtful = this.#doubtful.get(lane);
    if (doubtful !== undefined) {
      const found = await this.#findClaimed(doubtful.token);
      this.#doubtful.delete(lane);
      if (found !== null) {
        const claim = this.#claimed(found, claimant, doubtful.sentAtMs);
        if (scope === everythingReady) return claim;
        // Who asks for certain jobs must not be given another that an earlier question had taken.
        await this.release(claim.claimed.lease, { delayMs: 0, refundAttempt: true });
      }
    }
    const first = await this.#claimReady(claimant, lane, scope);
    if (first.kind === 'claimed') return first;
    // Nothing is ready. What became due this moment may just not have been moved yet.
    const { staged, swept } = await this.tidy();
    return staged + swept > 0 ? this.#claimReady(claimant, lane, scope) : first;
  }

  /**
   * Moves due jobs to ready and takes expired leases away, a bounded batch of each. A claim that finds nothing does it by
   * itself; while there is always something ready, someone else has to call it now and then.
   */
  tidy(): Promise<Tidied> {
    return this.#janitor.tidy();
  }

  async renew(leases: readonly Lease[]): Promise<{ lost: Lease[] }> {
    if (leases.length === 0) return { lost: [] };
    const sentAtMs = this.#clock.monotonicMs();
    const held: mongo.Filter<QueueEnvelope> = {
      _id: { $in: leases.map(({ jobId }) => new Types.ObjectId(jobId)) },
      phase: 'leased',
      'lease.token': { $in: leases.map(({ token }) => token) },
    };
    const { matchedCount } = await this.#collection.updateMany(held, renewPipeline(this.leaseMs), {
      hint: '_id_',
    });
    const kept = matchedCount === leases.length ? leases : await this.#stillHeld(leases, held);
    for (const lease of kept) lease.deadlineMs = this.#deadlineMs(sentAtMs);
    return { lost: leases.filter((lease) => !kept.includes(lease)) };
  }

  async record(lease: Lease, patch: PayloadPatch<Payload>): Promise<Written<'recorded'>> {
    assertPayloadOnly(patch);
    return (await this.#write(lease, recordPipeline(patch))) ? { kind: 'recorded' } : { kind: 'lease_lost' };
  }

  complete(lease: Lease, patch: PayloadPatch<Payload> = {}): Promise<Written<'completed'>> {
    assertPayloadOnly(patch);
    return this.#settle(lease, 'completed', completePipeline(lease.token, patch));
  }

  async release(
    lease: Lease,
    options: ReleaseOptions,
    patch: PayloadPatch<Payload> = {},
  ): Promise<Written<'released' | 'dead_lettered'>> {
    const { delayMs, failure, refundAttempt = false, yieldsPlace = false } = options;
    if (!refundAttempt && lease.attempt >= lease.maxAttempts)
      return this.deadLetter(lease, failure ?? spentFailure, patch);
    assertPayloadOnly(patch);
    const { token } = lease;
    const weightMs = this.#weightMs;
    return this.#settle(
      lease,
      'released',
      releasePipeline({ token, delayMs, refundAttempt, yieldsPlace, failure, patch, weightMs }),
    );
  }

  deadLetter(
    lease: Lease,
    failure: Failure,
    patch: PayloadPatch<Payload> = {},
  ): Promise<Written<'dead_lettered'>> {
    assertPayloadOnly(patch);
    return this.#settle(lease, 'dead_lettered', deadLetterPipeline(lease.token, failure, patch));
  }

  /**
   * A job that waits is due now, for what it waited for is known to have come; and it has at least that priority. Does
   * nothing to one that is held or over.
   */
  async hasten(jobId: string, priority: number): Promise<void> {
    await this.#collection.updateOne(
      { _id: new Types.ObjectId(jobId), phase: { $in: ['waiting', 'ready'] } },
      hastenPipeline(priority, this.#weightMs),
      { hint: '_id_' },
    );
  }

  async find(jobId: string): Promise<(Payload & QueueEnvelope) | null> {
    const job = await this.#collection.findOne({ _id: new Types.ObjectId(jobId) });
    return job === null ? null : this.#asJob(job);
  }

  async findByKey(key: string): Promise<(Payload & QueueEnvelope) | null> {
    const job = await this.#collection.findOne({ key }, { hint: queueIndex.key });
    return job === null ? null : this.#asJob(job);
  }

  /**
   * Dead → ready, with fresh attempts; `patch` may clear what the payload kept of its failure. Only after the dead letter
   * was projected, so that a slow projection can't put the record back. Use `DeadLetterProjector.replay`, which sees to that.
   */
  async replay(jobId: string, patch: PayloadPatch<Payload> = {}): Promise<ReplayResult<Payload>> {
    assertPayloadOnly(patch);
    const _id = new Types.ObjectId(jobId);
    const job = await this.#collection.findOneAndUpdate(
      { _id, phase: 'dead', deadLetterPending: false },
      replayPipeline(patch, this.#weightMs),
      { returnDocument: 'after', hint: { _id: 1 } },
    );
    if (job !== null) return { kind: 'replayed', job: this.#asJob(job) };
    const actual = await this.find(jobId);
    return actual === null ? { kind: 'not_found' } : { kind: 'not_dead', job: actual };
  }

  /** Jobs whose dead-letter record is behind, in the order of their ids, after `afterId`. */
  async findUnprojected(limit: number, afterId?: Types.ObjectId): Promise<(Payload & QueueEnvelope)[]> {
    const jobs = await this.#collection
      .find(
        { deadLetterPending: true, ...(afterId === undefined ? {} : { _id: { $gt: afterId } }) },
        { sort: { deadLetterPending: 1, _id: 1 }, limit, hint: queueIndex.unprojected },
      )
      .toArray();
    return jobs.map((job) => this.#asJob(job));
  }

  /**
   * The record agrees with `seen`. Does nothing where the job went on since. Replays tell one stay outside the dead letters
   * from the next; the epoch alone would not do, because a claim in the meantime changes nothing about the record.
   */
  async markProjected(seen: QueueEnvelope): Promise<void> {
    const phase: mongo.Condition<QueueEnvelope['phase']> = seen.phase === 'dead' ? 'dead' : { $ne: 'dead' };
    await this.#collection.updateOne(
      { _id: seen._id, phase, replays: seen.replays, deadLetterPending: true },
      { $set: { deadLetterPending: false } },
      { hint: '_id_' },
    );
  }

  /**
   * Dead → done: the work turned out to have been finished before its worker died, so there is nothing to dead-letter. Only
   * before the record was written, and nothing where the job went on since.
   */
  async completeDead(seen: QueueEnvelope, patch: PayloadPatch<Payload>): Promise<void> {
    assertPayloadOnly(patch);
    await this.#collection.updateOne(
      { _id: seen._id, phase: 'dead', replays: seen.replays, deadLetterPending: true },
      completeDeadPipeline(patch),
      { hint: '_id_' },
    );
  }

  // Looked up at each call: the client exists only once the connection was opened.
  get #collection(): mongo.Collection<QueueEnvelope> {
    return nativeCollection<QueueEnvelope>(this.#options.model);
  }

  #enqueuePipeline(_id: Types.ObjectId, request: EnqueueRequest<Payload>): mongo.Document[] {
    const { key, payload, priority = 0, delayMs = 0, maxAttempts = this.#options.maxAttempts } = request;
    assertPayloadOnly(payload);
    const { isEpochFromClock = false } = this.#options;
    const weightMs = this.#weightMs;
    return enqueuePipeline({ _id, key, payload, priority, delayMs, maxAttempts, weightMs, isEpochFromClock });
  }

  async #claimReady(
    claimant: Claimant,
    lane: string,
    { filter, index }: ClaimScope,
  ): Promise<ClaimResult<Payload>> {
    // Made before the call, so that a claim whose reply is lost can be found again.
    const token = randomUUID() as string as LeaseToken;
    const sentAtMs = this.#clock.monotonicMs();
    let job: mongo.WithId<QueueEnvelope> | null;
    try {
      job = await this.#collection.findOneAndUpdate(
        { phase: 'ready', ...filter },
        claimPipeline(token, claimant, this.leaseMs),
        {
          sort: index,
          hint: index,
          returnDocument: 'after',
        },
      );
    } catch (error) {
      if (!isReplyLost(error)) throw error;
      // A look that finds nothing may have been faster than the claim on its way; this lane's next claim looks once more.
      this.#doubtful.set(lane, { token, sentAtMs });
      job = await this.#findClaimed(token);
      if (job !== null) this.#doubtful.delete(lane);
    }
    return job === null ? { kind: 'empty' } : this.#claimed(job, claimant, sentAtMs);
  }

  /** The few leased documents are scanned: this happens after a lost reply only and is no reason for another index. */
  #findClaimed(token: LeaseToken): Promise<mongo.WithId<QueueEnvelope> | null> {
    return this.#collection.findOne({ phase: 'leased', 'lease.token': token }, { hint: queueIndex.leases });
  }

  #claimed(job: mongo.WithId<QueueEnvelope>, claimant: Claimant, sentAtMs: number): ClaimedResult<Payload> {
    const lease: Lease = {
      jobId: job._id.toHexString(),
      token: (job.lease as NonNullable<QueueEnvelope['lease']>).token,
      epoch: job.epoch,
      attempt: job.attempts,
      maxAttempts: job.maxAttempts,
      claimant,
      deadlineMs: this.#deadlineMs(sentAtMs),
    };
    return { kind: 'claimed', claimed: { lease, job: this.#asJob(job) } };
  }

  /** The server counts the lease from when the call arrived, which is later than when it was sent: this errs to the safe side. */
  #deadlineMs(sentAtMs: number): number {
    return sentAtMs + this.leaseMs * (1 - DEADLINE_MARGIN);
  }

  async #stillHeld(leases: readonly Lease[], held: mongo.Filter<QueueEnvelope>): Promise<readonly Lease[]> {
    const found = await this.#collection
      .find(held, { projection: { 'lease.token': 1 }, hint: '_id_' })
      .toArray();
    const tokens = new Set(found.map(({ lease }) => lease?.token));
    return leases.filter(({ token }) => tokens.has(token));
  }

  async #write(lease: Lease, pipeline: mongo.Document[]): Promise<boolean> {
    const { matchedCount } = await this.#collection.updateOne(
      { _id: new Types.ObjectId(lease.jobId), phase: 'leased', 'lease.token': lease.token },
      pipeline,
      { hint: '_id_' },
    );
    return matchedCount === 1;
  }

  async #settle<As extends SettledLease['as']>(
    lease: Lease,
    as: As,
    pipeline: mongo.Document[],
  ): Promise<Written<As>> {
    if (await this.#write(lease, pipeline)) return { kind: as };
    // No match is either a lost lease or the repetition of a call that was applied while its reply got lost.
    const job = await this.#collection.findOne(
      { _id: new Types.ObjectId(lease.jobId) },
      { projection: { settled: 1 }, hint: '_id_' },
    );
    const applied = job?.settled?.token === lease.token && job.settled.as === as;
    return applied ? { kind: as } : { kind: 'lease_lost' };
  }

  // The payload was cast by whoever enqueued it, and nothing else writes this collection's payload fields.
  #asJob(job: mongo.WithId<QueueEnvelope>): Payload & QueueEnvelope {
    return job as unknown as Payload & QueueEnvelope;
  }
}
