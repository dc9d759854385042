import type { Types } from 'mongoose';
import type { Logger } from '../platform/logger';
import type { DeadLetterReason, DeadLetterSubject } from './dead-letter.model';
import type { DeadLetterRepository } from './dead-letters';
import type { QueueEnvelope } from './envelope';
import type { MongoWorkerQueue, ReplayResult } from './mongo-worker-queue';
import { WORKER_DIED } from './update-pipelines';
import type { PayloadPatch } from './worker-queue';

export interface DeadLetterProjectorOptions<Payload extends object> {
  pipeline: string;
  queue: MongoWorkerQueue<Payload>;
  records: DeadLetterRepository;
  /** What the record is to name of this job. */
  describe: (job: Payload & QueueEnvelope) => DeadLetterSubject;
  /** The pipeline's own consequence (it fails the linked job). May be called again after a crash; fenced by `job.epoch`. */
  onDead?: (job: Payload & QueueEnvelope) => Promise<void>;
  logger: Logger;
}

const PAGE_SIZE = 50;

/**
 * Brings `deadLetteredRequests` in line with a queue. The queue document is the truth and changes in one fenced write, which
 * also sets `deadLetterPending`; each step here may be repeated, and the flag falls last. A crash between any two steps thus
 * leaves work to do, never a false or a missing record.
 */
export class DeadLetterProjector<Payload extends object> {
  constructor(private readonly options: DeadLetterProjectorOptions<Payload>) {}

  /** All that is behind, one by one. A job that fails here is logged and left for the next pass. @returns how many succeeded */
  async projectPending(): Promise<number> {
    const { queue } = this.options;
    let projected = 0;
    let after: Types.ObjectId | undefined;
    for (;;) {
      const jobs = await queue.findUnprojected(PAGE_SIZE, after);
      for (const job of jobs) {
        if (await this.#tryProject(job)) projected++;
      }
      // Paged by key, so that a page full of failing ones doesn't hide those behind it.
      after = jobs.at(-1)?._id;
      if (jobs.length < PAGE_SIZE) return projected;
    }
  }

  /** One job as it was read. */
  async project(job: Payload & QueueEnvelope): Promise<void> {
    const { queue, records, pipeline, describe, onDead } = this.options;
    if (job.phase === 'dead') {
      await onDead?.(job);
      await records.put({ ...describe(job), ...this.#factsOf(job) });
    } else {
      await records.markReplayed(pipeline, job.key, job.epoch);
    }
    await queue.markProjected(job);
  }

  /** Sends a dead job back to work. Of two calls at once, one replays and the other gets `not_dead`. */
  async replay(jobId: string, patch?: PayloadPatch<Payload>): Promise<ReplayResult<Payload>> {
    const { queue } = this.options;
    const before = await queue.find(jobId);
    if (before?.phase === 'dead' && before.deadLetterPending) await this.project(before);
    const result = await queue.replay(jobId, patch);
    // The job is on its way whether or not the record could be written now.
    if (result.kind === 'replayed') await this.#tryProject(result.job);
    return result;
  }

  async #tryProject(job: Payload & QueueEnvelope): Promise<boolean> {
    try {
      await this.project(job);
      return true;
    } catch (error) {
      const { logger, pipeline } = this.options;
      logger.error(
        { err: error, pipeline, jobId: job._id.toHexString() },
        'dead letter not projected; will try again',
      );
      return false;
    }
  }

  #factsOf(job: Payload & QueueEnvelope) {
    const last = job.errors.at(-1);
    return {
      pipeline: this.options.pipeline,
      requestId: job.key,
      jobId: job._id.toHexString(),
      epoch: job.epoch,
      attempts: job.attempts,
      replays: job.replays,
      reason: reasonOf(last),
      errorCode: last?.code ?? 'UNKNOWN',
      errorMessage: last?.message ?? '',
      retryable: last?.retryable ?? false,
      workerId: last?.workerId ?? '',
      deadLetteredAt: job.finishedAt ?? job.enqueuedAt,
    };
  }
}

function reasonOf(last: { code: string; retryable: boolean } | undefined): DeadLetterReason {
  if (last?.code === WORKER_DIED) return 'worker_died';
  return last?.retryable === true ? 'retries_exhausted' : 'non_retryable';
}
