import { systemClock } from '../platform/clock';
import type { WorkerId } from '../platform/ids';
import type { Logger } from '../platform/logger';
import { noMetrics } from '../platform/metrics';
import { onlyJob, type ClaimScope } from '../queue/claim-scope';
import type { Claimant, ClaimResult } from '../queue/worker-queue';
import { Attempt, type Ending } from './attempt';
import { Connectivity } from './connectivity';
import type { JobHandler } from './job-handler';
import { LeaseKeeper } from './lease-keeper';
import { Tally } from './tally';
import { createWorkerEvents } from './worker-events';
import type { PoolQueue, WorkSourceOptions } from './work-source';

export type RunResult =
  | { kind: 'ran'; ending: Ending['kind'] }
  /** Someone else holds it, or it is over. */
  | { kind: 'not_available' };

/** A queue that can be asked for one job by name. */
export interface ScopedQueue<Payload> extends PoolQueue<Payload> {
  claim(claimant: Claimant, scope?: ClaimScope): Promise<ClaimResult<Payload>>;
}

export interface SoloRunnerOptions<Payload extends object> {
  source: WorkSourceOptions<Payload> & { queue: ScopedQueue<Payload> };
  workerId: WorkerId;
  logger: Logger;
}

const ABORT_GRACE_MS = 5_000;

/**
 * Works on one named job outside the pool, exactly as a lane would: whatever an operator or an event does to a job, no
 * worker does anything to it at the same time, and an outage or a lost lease means the same as there.
 */
export class SoloRunner<Payload extends object> {
  readonly #options: SoloRunnerOptions<Payload>;
  readonly #lanes = new Set<number>();

  constructor(options: SoloRunnerOptions<Payload>) {
    this.#options = options;
  }

  /** @param signal aborts the try; the job is handed back. */
  async run(
    jobId: string,
    handler: JobHandler<Payload> = this.#options.source.handler,
    signal?: AbortSignal,
  ): Promise<RunResult> {
    // Each run a lane of its own, outside the numbers that a pool gives; the lowest that is free, so that what a lost answer
    // left in doubt is looked for by the next run on that lane.
    let lane = -1;
    while (this.#lanes.has(lane)) lane -= 1;
    this.#lanes.add(lane);
    try {
      return await this.#runOn(lane, { jobId, handler, ...(signal === undefined ? {} : { signal }) });
    } finally {
      this.#lanes.delete(lane);
    }
  }

  async #runOn(
    lane: number,
    { jobId, handler, signal }: { jobId: string; handler: JobHandler<Payload>; signal?: AbortSignal },
  ): Promise<RunResult> {
    const { source, workerId, logger } = this.#options;
    const claim = await source.queue.claim({ workerId, lane }, onlyJob(jobId));
    if (claim.kind === 'empty') return { kind: 'not_available' };
    const events = createWorkerEvents();
    const connectivity = new Connectivity(logger, events);
    const shared = { events, connectivity, clock: systemClock, metrics: noMetrics };
    const keeper = new LeaseKeeper(shared);
    const attempt = new Attempt({ ...source, handler }, claim.claimed, {
      ...shared,
      keeper,
      tally: new Tally(),
      logger,
      random: Math.random,
      abortGraceMs: ABORT_GRACE_MS,
    });
    const expire = (): void => attempt.expire();
    signal?.addEventListener('abort', expire, { once: true });
    try {
      if (signal?.aborted === true) expire();
      const { kind } = await attempt.run();
      return { kind: 'ran', ending: kind };
    } finally {
      signal?.removeEventListener('abort', expire);
      keeper.stop();
    }
  }
}
