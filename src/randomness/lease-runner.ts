import type { WorkerId } from '../platform/ids';
import type { Logger } from '../platform/logger';
import { onlyJob } from '../queue/mongo-worker-queue';
import { backoffMs, type RetryPolicy } from '../queue/retry-policy';
import type { JobHandler, JobOutcome } from '../worker/job-handler';
import type { RandomnessJob, StoredRandomnessJob } from './randomness-job.model';
import type { RandomnessQueue } from './randomness-queue';

export type RunResult =
  | { kind: 'ran'; outcome: JobOutcome<RandomnessJob>['kind']; job: StoredRandomnessJob | null }
  /** A worker holds it, or it is over. */
  | { kind: 'not_available' };

export interface LeaseRunnerDeps {
  queue: RandomnessQueue;
  retryPolicy: RetryPolicy;
  workerId: WorkerId;
  logger: Logger;
}

/** Outside the numbers that a pool gives to its lanes. */
const OWN_LANE = -1;
const RENEWALS_PER_LEASE = 3;

/**
 * Works on one named job outside the pool, under a lease like any worker's: whatever an operator or an event does to a job,
 * no worker does anything to it at the same time.
 */
export class LeaseRunner {
  readonly #deps: LeaseRunnerDeps;

  constructor(deps: LeaseRunnerDeps) {
    this.#deps = deps;
  }

  async run(jobId: string, handler: JobHandler<RandomnessJob>, signal?: AbortSignal): Promise<RunResult> {
    const { queue, workerId, logger } = this.#deps;
    const claim = await queue.claim({ workerId, lane: OWN_LANE }, onlyJob(jobId));
    if (claim.kind === 'empty') return { kind: 'not_available' };
    const { claimed } = claim;
    const controller = new AbortController();
    const abort = (): void => controller.abort(signal?.reason);
    signal?.addEventListener('abort', abort, { once: true });
    const renewal = setInterval(() => {
      queue.renew([claimed.lease]).then(
        ({ lost }) => {
          if (lost.length > 0) controller.abort(new Error('lease lost'));
        },
        (error: unknown) => logger.warn({ err: error, jobId }, 'a lease could not be renewed'),
      );
    }, queue.leaseMs / RENEWALS_PER_LEASE);
    try {
      const outcome = await handler(claimed, { signal: controller.signal, logger });
      const settled = await this.#settle(claimed.lease, outcome);
      return { kind: 'ran', outcome: settled, job: await queue.find(jobId) };
    } catch (error) {
      await queue.release(claimed.lease, { delayMs: 0, refundAttempt: true });
      throw error;
    } finally {
      clearInterval(renewal);
      signal?.removeEventListener('abort', abort);
    }
  }

  async #settle(
    lease: Parameters<RandomnessQueue['complete']>[0],
    outcome: JobOutcome<RandomnessJob>,
  ): Promise<JobOutcome<RandomnessJob>['kind']> {
    const { queue, retryPolicy } = this.#deps;
    const written = await this.#write(lease, outcome, queue, retryPolicy);
    return written === 'lease_lost' ? 'lease_lost' : outcome.kind;
  }

  async #write(
    lease: Parameters<RandomnessQueue['complete']>[0],
    outcome: JobOutcome<RandomnessJob>,
    queue: RandomnessQueue,
    retryPolicy: RetryPolicy,
  ): Promise<string> {
    switch (outcome.kind) {
      case 'completed':
        return (await queue.complete(lease, outcome.patch)).kind;
      case 'retry': {
        const { failure, patch } = outcome;
        const delayMs = backoffMs(retryPolicy, lease.attempt, Math.random, failure.retryAfterMs);
        return (await queue.release(lease, { delayMs, failure }, patch)).kind;
      }
      case 'dead':
        return (await queue.deadLetter(lease, outcome.failure, outcome.patch)).kind;
      case 'postponed':
        return (await queue.release(lease, { delayMs: outcome.delayMs, refundAttempt: true })).kind;
      case 'lease_lost':
        return 'lease_lost';
    }
  }
}
