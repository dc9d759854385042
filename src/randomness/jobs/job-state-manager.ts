import type { Clock } from '../../platform/clock';
import type { Logger } from '../../platform/logger';
import type { Metrics } from '../../platform/metrics';
import { ceilingMs, type RetryPolicy } from '../../queue/retry-policy';
import type { Lease, LeaseLost, PayloadPatch, WorkerQueue } from '../../queue/worker-queue';
import type { Afterwards } from '../../worker/job-handler';
import type { MetricsCache } from './metrics-cache';
import type { ProcessingSlots } from '../processing/processing-slots';
import type { QueueMetrics } from './queue-metrics';
import {
  jobQueuePriority,
  newRandomnessJob,
  type RandomnessJob,
  type RandomnessJobInput,
  type StoredRandomnessJob,
} from './randomness-job.model';
import type { JobPage, RandomnessJobs } from './randomness-jobs.repository';
import { type JobState, type StateTransition, takeSteps, type TransitionStep } from './randomness-lifecycle';

/** A job under our lease. While it stands nobody else writes to the job, so `job` is the truth; each write updates it. */
export interface HeldJob {
  readonly lease: Lease;
  job: StoredRandomnessJob;
}

/** Products of a phase, stored in the same write as the transition that ends it. */
export type PhaseProducts = Partial<
  Pick<
    RandomnessJob,
    'randomness' | 'seedSigned' | 'oracleKey' | 'txHash' | 'ledger' | 'confirmedAt' | 'slaBreached'
  >
>;

export type TransitionResult =
  | { kind: 'moved' }
  | { kind: 'already' }
  | { kind: 'illegal'; fromState: JobState; toState: JobState }
  | LeaseLost;

export interface JobStateManagerDeps {
  queue: WorkerQueue<RandomnessJob>;
  jobs: RandomnessJobs;
  slots: ProcessingSlots;
  metricsCache: MetricsCache;
  retryPolicy: RetryPolicy;
  maxRetries: number;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
}

/**
 * The lifecycle of randomness jobs, durable: the record lives in the job's own document and is written under the job's
 * lease only. Two processes can't both move a job, and neither can a process that has lost it.
 */
export class JobStateManager {
  readonly #deps: JobStateManagerDeps;

  constructor(deps: JobStateManagerDeps) {
    this.#deps = deps;
  }

  /** Idempotent by the job's key: a second call gets the first one's job. */
  async initializeJob({
    key,
    ...input
  }: RandomnessJobInput): Promise<{ kind: 'enqueued' | 'already_there'; job: StoredRandomnessJob }> {
    const payload = newRandomnessJob(input, this.#now());
    return this.#deps.queue.enqueue({
      key,
      payload,
      priority: jobQueuePriority(payload),
      maxAttempts: this.#deps.maxRetries,
    });
  }

  transitionState(
    held: HeldJob,
    toState: JobState,
    reason?: string,
    error?: string,
  ): Promise<TransitionResult> {
    const step: TransitionStep = {
      toState,
      ...(reason === undefined ? {} : { reason }),
      ...(error === undefined ? {} : { error }),
    };
    return this.takeSteps(held, [step]);
  }

  /** Several transitions and what they produced, in one write. */
  async takeSteps(
    held: HeldJob,
    steps: readonly TransitionStep[],
    products: PhaseProducts = {},
  ): Promise<TransitionResult> {
    const planned = this.#plan(held, steps);
    if (planned.kind !== 'moved') return planned;
    const patch = { ...planned.record, ...products, updatedAt: this.#now() };
    const written = await this.#write(held, patch);
    if (written.kind === 'lease_lost') return written;
    this.#tell(held, planned.added);
    return { kind: 'moved' };
  }

  /**
   * The last transitions of a try, for the write that ends it in the queue: the two are one, so a crash can't leave a
   * confirmed job leased or a dead one confirming. They are told of when that write is done.
   * @throws RangeError for a transition that the table forbids: a mistake of our program, which no retry mends.
   */
  ending(
    held: HeldJob,
    steps: readonly TransitionStep[],
    products: PhaseProducts = {},
  ): Required<Afterwards<RandomnessJob>> {
    const planned = this.#plan(held, steps);
    if (planned.kind === 'illegal') {
      throw new RangeError(
        `${planned.fromState} → ${planned.toState} is not a transition of a randomness job`,
      );
    }
    const record = planned.kind === 'moved' ? planned.record : {};
    const patch = { ...record, ...products, updatedAt: this.#now() };
    held.job = { ...held.job, ...patch };
    const added = planned.kind === 'moved' ? planned.added : [];
    return { patch, onStored: () => this.#tell(held, added) };
  }

  /** Stores products without a transition. */
  record(held: HeldJob, products: PhaseProducts): Promise<{ kind: 'recorded' } | LeaseLost> {
    return this.#write(held, { ...products, updatedAt: this.#now() });
  }

  /**
   * Counts the try that this lease stands for, once however often it is called: the claim has numbered it.
   * `maxReached` says that it is the last.
   */
  async incrementAttempt(held: HeldJob): Promise<{ kind: 'counted'; maxReached: boolean } | LeaseLost> {
    const { attempt, maxAttempts } = held.lease;
    if (held.job.attemptCount !== attempt) {
      const written = await this.#write(held, { attemptCount: attempt });
      if (written.kind === 'lease_lost') return written;
    }
    return { kind: 'counted', maxReached: attempt >= maxAttempts };
  }

  canAcquireProcessingSlot(urgent = false): boolean {
    return this.#deps.slots.canAcquire(urgent);
  }

  /** The curve of the specification, in milliseconds: the longest wait after the given attempt (from 1). */
  calculateBackoff(attemptCount: number): number {
    return ceilingMs(this.#deps.retryPolicy, attemptCount);
  }

  /** At most as old as the cache lets them get. */
  getMetrics(): Promise<QueueMetrics> {
    return this.#deps.metricsCache.get();
  }

  getJobsByState(state: JobState, options: { limit: number; after?: string }): Promise<JobPage> {
    return this.#deps.jobs.pageByState(state, options.limit, options.after);
  }

  /** Removes ended jobs older than that. Dead letters stay until they are dealt with. Returns how many went. */
  cleanupOldJobs(retentionMs: number): Promise<number> {
    return this.#deps.jobs.removeDoneBefore(retentionMs, this.#deps.clock.now());
  }

  #plan(held: HeldJob, steps: readonly TransitionStep[]) {
    const { job, lease } = held;
    const planned = takeSteps(job, steps, this.#now(), lease.attempt);
    if (planned.kind === 'illegal') {
      const { fromState, toState } = planned;
      this.#deps.logger.error(
        { requestId: job.requestId, fromState, toState },
        `Job ${job.requestId} refused: ${fromState} → ${toState} is not a legal transition`,
      );
    }
    return planned;
  }

  async #write(held: HeldJob, patch: PayloadPatch<RandomnessJob>): Promise<{ kind: 'recorded' } | LeaseLost> {
    const written = await this.#deps.queue.record(held.lease, patch);
    if (written.kind === 'recorded') held.job = { ...held.job, ...patch };
    return written;
  }

  #tell({ job, lease }: HeldJob, added: readonly StateTransition[]): void {
    tellTransitions(this.#deps, job, added, { attempt: lease.attempt, maxAttempts: lease.maxAttempts });
  }

  #now(): Date {
    return new Date(this.#deps.clock.now());
  }
}

export function tellTransitions(
  { logger, metrics }: { logger: Logger; metrics: Metrics },
  { requestId, raffleId }: Pick<RandomnessJob, 'requestId' | 'raffleId'>,
  added: readonly StateTransition[],
  { attempt, maxAttempts }: { attempt: number; maxAttempts: number },
): void {
  for (const { fromState, toState, reason } of added) {
    metrics.count('randomness_transitions_total', { from: fromState, to: toState });
    logger.info(
      { requestId, raffleId, fromState, toState, reason, attempt, maxAttempts },
      `Job ${requestId} transitioned: ${fromState} → ${toState} (${reason ?? 'no reason given'}) [attempt ${attempt}/${maxAttempts}]`,
    );
    if (toState === 'dead-lettered') {
      logger.error(
        { requestId, raffleId },
        `[DEAD-LETTER] Job ${requestId} exhausted all ${maxAttempts} attempts. Manual intervention required.`,
      );
    }
  }
}
