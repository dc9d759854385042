import type { Failure } from '../platform/errors';
import type { Logger } from '../platform/logger';
import type { ClaimedJob, PayloadPatch } from '../queue/worker-queue';

export interface JobContext {
  /** Aborts when the lease is lost, or when a draining process reaches its deadline. Stop, and write nothing more. */
  signal: AbortSignal;
  /** Carries pipeline, job id, attempt and lane. */
  logger: Logger;
}

/** What goes with the end of a try. */
export interface Afterwards<Payload> {
  patch?: PayloadPatch<Payload>;
  /** Called once the end is stored, and never where the lease was lost: for what may be told only if it is so. */
  onStored?: () => void;
}

/** How a try ended. The lane, not the handler, writes it to the queue. */
export type JobOutcome<Payload> =
  | ({ kind: 'completed'; ledger?: number } & Afterwards<Payload>)
  /** Another try after back-off; a dead letter when the attempts are spent. */
  | ({ kind: 'retry'; failure: Failure } & Afterwards<Payload>)
  /** Can never succeed: a dead letter now. */
  | ({ kind: 'dead'; failure: Failure } & Afterwards<Payload>)
  /** The job could do nothing about it (no free slot, not decided on chain yet): back in `delayMs`, at no cost of an attempt. */
  | ({
      kind: 'postponed';
      delayMs: number;
      reason: string;
      /** It goes behind what is due before it is again, for it may come back many times; else it keeps its place. */
      yieldsPlace?: boolean;
    } & Afterwards<Payload>)
  /** Some fenced write found the lease gone. Someone else owns the job now. */
  | { kind: 'lease_lost' };

/**
 * One try at one job. An error it throws is described by `describeFailure` and becomes `retry` or `dead`; an abort of
 * the context's signal makes whatever it throws meaningless.
 */
export type JobHandler<Payload> = (
  claimed: ClaimedJob<Payload>,
  context: JobContext,
) => Promise<JobOutcome<Payload>>;
