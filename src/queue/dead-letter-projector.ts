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
  /**
   * Asked first: what the job is to be completed with, where its work turns out to have been done before its worker died; null
   * where it was not. While nobody can tell, it throws, and the job is left for a later pass.
   */
  findFinished?: (job: Payload & QueueEnvelope) => Promise<PayloadPatch<Payload> | null>;
  /** The pipeline's own consequence (it fails the linked job). May be called again after a crash; fenced by `job.epoch`. */
  onDead?: (job: Payload & QueueEnvelope) => Promise<void>;
  logger: Logger;
}

const PAGE_SIZE = 50;
/** Each may have to ask the chain, and wait for its answer. */
const PARALLEL = 10;

/**
 * Brings `deadLetteredRequests` in line with a queue. The queue document is the truth and changes in one fenced write, which
 * also sets `deadLetterPending`; each step here may be repeated, and the flag falls last. A crash between any two steps thus
 * leaves work to do, never a false or a missing record.
 */
export class DeadLetterProjector<Payload extends object> {
  constructor(private readonly options: DeadLetterProjectorOptions<Payload>) {}

  /**
   * All that is behind, a few at a time, until `signal` aborts. A job that fails here is logged and left for the next pass.
   * @returns how many succeeded
   */
  async projectPending(signal?: AbortSignal): Promise<number> {
    const { queue } = this.options;
    let projected = 0;
    let after: Types.ObjectId | undefined;
    for (;;) {
      const jobs = await queue.findUnprojected(PAGE_SIZE, after);
      for (let start = 0; start < jobs.length; start += PARALLEL) {
        if (signal?.aborted === true) return projected;
        const successes = await Promise.all(
          jobs.slice(start, start + PARALLEL).map((job) => this.#tryProject(job)),
        );
        projected += successes.filter(Boolean).length;
      }
      // Paged by key, so that a page full of failing ones doesn't hide those behind it.
      after = jobs.at(-1)?._id;
      if (jobs.length < PAGE_SIZE) return projected;
    }
  }

  /** That job, if it is behind; whatever else is waits for the next pass. */
  async projectOne(jobId: string): Promise<void> {
    const job = await this.options.queue.find(jobId);
    if (job?.deadLetterPending === true) await this.#tryProject(job);
  }

  /** One job as it was read. */
  async project(job: Payload & QueueEnvelope): Promise<void> {
    const { queue, records, pipeline, describe, findFinished, onDead } = this.options;
    if (job.phase === 'dead') {
      const patch = (await findFinished?.(job)) ?? null;
      if (patch !== null) {
        await queue.completeDead(job, patch);
        // An earlier death of it may be on record, from which a replay took it before it could be told of.
        return records.markReplayed(pipeline, job.key, job.epoch + 1);
      }
      await onDead?.(job);
      await records.put({ ...describe(job), ...this.#factsOf(job) });
      await this.#closeIfAlive(job);
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

  /** Another pass may have found out meanwhile that the work was done, and closed the record before this one wrote it. */
  async #closeIfAlive({ _id, key, epoch }: QueueEnvelope): Promise<void> {
    const { queue, records, pipeline } = this.options;
    const now = await queue.find(_id.toHexString());
    if (now?.phase === 'done') await records.markReplayed(pipeline, key, epoch + 1);
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
