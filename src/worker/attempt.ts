import { sleep, type Clock } from '../platform/clock';
import { isDatabaseUnreachable } from '../platform/database/faults';
import { BusyError, describeFailure, type Failure } from '../platform/errors';
import type { Logger } from '../platform/logger';
import type { Metrics } from '../platform/metrics';
import { backoffMs } from '../queue/retry-policy';
import type { ClaimedJob, LeaseLost, PayloadPatch } from '../queue/worker-queue';
import type { Connectivity } from './connectivity';
import type { JobOutcome } from './job-handler';
import type { HeldLease, LeaseKeeper } from './lease-keeper';
import type { Tally } from './tally';
import type { JobEvent, WorkerEvents } from './worker-events';
import type { WorkSourceOptions } from './work-source';

export interface AttemptEnvironment {
  keeper: LeaseKeeper;
  events: WorkerEvents;
  connectivity: Connectivity;
  tally: Tally;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
  /** In 0 … 1, as Math.random. */
  random: () => number;
  /** How long a handler may go on after its signal aborted before its lane stops waiting for it. */
  abortGraceMs: number;
}

/** How a try ended in the queue. */
export type Ending =
  | { kind: 'completed'; ledger: number | undefined }
  | { kind: 'released'; delayMs: number; failure: Failure | undefined }
  | { kind: 'dead_lettered'; failure: Failure }
  | LeaseLost;

type FailureCause = 'job' | 'busy' | 'outage';

/** What the handler came to, or that it did not come back. */
type Tried<Payload> =
  | { kind: 'outcome'; outcome: JobOutcome<Payload> }
  | { kind: 'threw'; failure: Failure; cause: FailureCause }
  | { kind: 'unresponsive' };

const FIRST_REWRITE_MS = 50;
const BUSY_RECHECK_MS = 1000;
const MAX_REWRITE_MS = 2000;

/** One try at one claimed job: runs the handler under the lease and writes how it ended, or writes nothing if the lease is gone. */
export class Attempt<Payload extends object> {
  readonly #controller = new AbortController();
  readonly #startedMs: number;
  readonly #logger: Logger;
  readonly #held: HeldLease;
  #leaseLost = false;
  #drainExpired = false;

  constructor(
    private readonly source: WorkSourceOptions<Payload>,
    private readonly claimed: ClaimedJob<Payload>,
    private readonly environment: AttemptEnvironment,
  ) {
    const { lease } = claimed;
    const { pipeline, queue } = source;
    this.#startedMs = environment.clock.monotonicMs();
    this.#logger = environment.logger.child({
      pipeline,
      jobId: lease.jobId,
      attempt: lease.attempt,
      lane: lease.claimant.lane,
    });
    this.#held = environment.keeper.hold(queue, lease, () => {
      this.#leaseLost = true;
      this.#controller.abort(new Error('lease lost'));
    });
    environment.events.emit('claimed', this.#event());
  }

  async run(): Promise<Ending> {
    return this.#finish(async () => this.#end(await this.#try()));
  }

  /** For a job that was claimed while the process was already stopping. */
  async handBackUnstarted(): Promise<void> {
    await this.#finish(() => this.#handBack({ refundAttempt: true }));
  }

  /** The drain's time is up: `run` hands the job back as soon as the handler returns, or after the grace. */
  expire(): void {
    this.#drainExpired = true;
    this.#controller.abort(new Error('the worker is shutting down'));
  }

  async #try(): Promise<Tried<Payload>> {
    const { signal } = this.#controller;
    const handled = (async (): Promise<Tried<Payload>> => {
      try {
        return {
          kind: 'outcome',
          outcome: await this.source.handler(this.claimed, { signal, logger: this.#logger }),
        };
      } catch (error) {
        if (!signal.aborted) this.#logger.warn({ err: error }, 'attempt threw');
        return { kind: 'threw', failure: describeFailure(error), cause: causeOf(error) };
      }
    })();
    let giveUp: NodeJS.Timeout | undefined;
    const unresponsive = new Promise<Tried<Payload>>((resolve) => {
      signal.addEventListener(
        'abort',
        () => {
          giveUp = setTimeout(() => resolve({ kind: 'unresponsive' }), this.environment.abortGraceMs);
        },
        { once: true },
      );
    });
    const tried = await Promise.race([handled, unresponsive]);
    clearTimeout(giveUp);
    if (tried.kind === 'unresponsive')
      this.#logger.error('the handler ignored its abort; its lane goes on without it');
    return tried;
  }

  async #end(tried: Tried<Payload>): Promise<Ending> {
    if (this.#leaseLost) return { kind: 'lease_lost' };
    if (this.#drainExpired && !hasResult(tried)) {
      const { attempt, maxAttempts } = this.claimed.lease;
      // A shutdown must not be what turns a job into a dead letter.
      return this.#handBack({ refundAttempt: attempt >= maxAttempts });
    }
    if (tried.kind === 'outcome') return this.#settleOr(tried.outcome);
    if (tried.kind === 'threw') {
      const { failure, cause } = tried;
      if (cause !== 'job') return this.#settleOr(this.#postponement(failure, cause));
      return this.#settleOr(failure.retryable ? { kind: 'retry', failure } : { kind: 'dead', failure });
    }
    return { kind: 'lease_lost' };
  }

  /** However often these come, they must not make a dead letter of a job that can do nothing about them. */
  #postponement(
    { message, retryAfterMs }: Failure,
    cause: Exclude<FailureCause, 'job'>,
  ): JobOutcome<Payload> {
    const { lease } = this.claimed;
    const delayMs =
      cause === 'busy'
        ? (retryAfterMs ?? BUSY_RECHECK_MS)
        : backoffMs(this.source.retryPolicy, lease.attempt, this.environment.random);
    return { kind: 'postponed', delayMs, reason: message };
  }

  /** An outcome that the database refuses (a patch it can't store) is itself a failed attempt. */
  async #settleOr(outcome: JobOutcome<Payload>): Promise<Ending> {
    try {
      const ending = await this.#settle(outcome);
      if (ending.kind !== 'lease_lost' && 'onStored' in outcome) outcome.onStored?.();
      return ending;
    } catch (error) {
      this.#logger.error({ err: error, outcome: outcome.kind }, 'the outcome could not be stored');
      return this.#settle({ kind: 'retry', failure: describeFailure(error) });
    }
  }

  async #settle(outcome: JobOutcome<Payload>): Promise<Ending> {
    const { queue, retryPolicy } = this.source;
    const { lease } = this.claimed;
    switch (outcome.kind) {
      case 'completed': {
        const written = await this.#write(() => queue.complete(lease, outcome.patch));
        return written.kind === 'lease_lost'
          ? { kind: 'lease_lost' }
          : { kind: 'completed', ledger: outcome.ledger };
      }
      case 'retry': {
        const { failure } = outcome;
        const delayMs = backoffMs(retryPolicy, lease.attempt, this.environment.random, failure.retryAfterMs);
        const written = await this.#write(() => queue.release(lease, { delayMs, failure }, outcome.patch));
        if (written.kind === 'released') return { kind: 'released', delayMs, failure };
        return written.kind === 'lease_lost' ? { kind: 'lease_lost' } : { kind: 'dead_lettered', failure };
      }
      case 'dead': {
        const { failure } = outcome;
        const written = await this.#write(() => queue.deadLetter(lease, failure, outcome.patch));
        return written.kind === 'lease_lost' ? { kind: 'lease_lost' } : { kind: 'dead_lettered', failure };
      }
      case 'postponed':
        this.#logger.debug({ reason: outcome.reason, delayMs: outcome.delayMs }, 'postponed');
        return this.#handBack({ refundAttempt: true, ...outcome });
      case 'lease_lost':
        return outcome;
    }
  }

  async #handBack({
    refundAttempt,
    delayMs = 0,
    yieldsPlace = false,
    patch,
  }: {
    refundAttempt: boolean;
    delayMs?: number;
    yieldsPlace?: boolean;
    patch?: PayloadPatch<Payload>;
  }): Promise<Ending> {
    const { lease } = this.claimed;
    const written = await this.#write(() =>
      this.source.queue.release(lease, { delayMs, refundAttempt, yieldsPlace }, patch),
    );
    return written.kind === 'released'
      ? { kind: 'released', delayMs, failure: undefined }
      : { kind: 'lease_lost' };
  }

  /**
   * Repeats a write that an outage interrupted, for as long as the lease may still stand. The queue answers a repetition of
   * what was applied already as done.
   */
  async #write<Written extends { kind: string }>(
    write: () => Promise<Written>,
  ): Promise<Written | LeaseLost> {
    const { clock, connectivity, random } = this.environment;
    this.#held.settling();
    for (let pauseMs = FIRST_REWRITE_MS; ; pauseMs = Math.min(pauseMs * 2, MAX_REWRITE_MS)) {
      try {
        const written = await write();
        connectivity.answered();
        return written;
      } catch (error) {
        if (!isDatabaseUnreachable(error)) throw error;
        connectivity.failed('settling', error);
        if (clock.monotonicMs() >= this.claimed.lease.deadlineMs) return { kind: 'lease_lost' };
        await sleep(pauseMs * (0.5 + random() / 2));
      }
    }
  }

  async #finish(work: () => Promise<Ending>): Promise<Ending> {
    // Whatever happens, nothing may go on renewing the lease of a job that nobody works on.
    const ending = await work().finally(() => this.#held.drop());
    await this.#report(ending);
    return ending;
  }

  async #report(ending: Ending): Promise<void> {
    const { environment } = this;
    const durationMs = Math.round(environment.clock.monotonicMs() - this.#startedMs);
    const event = { ...this.#event(), durationMs };
    const failure = 'failure' in ending ? ending.failure : undefined;
    const level = ending.kind === 'dead_lettered' || ending.kind === 'lease_lost' ? 'warn' : 'info';
    this.#logger[level](
      {
        outcome: ending.kind,
        durationMs,
        ...(failure === undefined ? {} : { errorCode: failure.code, errorMessage: failure.message }),
      },
      'attempt finished',
    );
    const labels = { pipeline: this.source.pipeline, outcome: ending.kind };
    environment.metrics.count('worker_attempts_total', labels);
    environment.metrics.observe('worker_attempt_duration_ms', durationMs, labels);
    switch (ending.kind) {
      case 'completed':
        environment.tally.completed(durationMs, ending.ledger);
        environment.events.emit('completed', event);
        return;
      case 'released':
        if (failure !== undefined) environment.tally.failed(durationMs);
        environment.events.emit('released', {
          ...event,
          delayMs: ending.delayMs,
          ...(failure === undefined ? {} : { failure }),
        });
        return;
      case 'dead_lettered':
        environment.tally.failed(durationMs);
        await this.#projectDeadLetter();
        environment.events.emit('dead_lettered', { ...event, failure: ending.failure });
        return;
      case 'lease_lost':
        environment.events.emit('lease_lost', event);
    }
  }

  async #projectDeadLetter(): Promise<void> {
    try {
      await this.source.deadLetters.projectOne(this.claimed.lease.jobId);
    } catch (error) {
      this.#logger.warn({ err: error }, 'dead letter not projected now; maintenance will');
    }
  }

  #event(): JobEvent {
    const { jobId, attempt, epoch, claimant } = this.claimed.lease;
    return { pipeline: this.source.pipeline, jobId, attempt, epoch, lane: claimant.lane };
  }
}

/** Whose fault a failure is: what the work needs was all taken, or our own database was away, or else the job itself. */
function causeOf(error: unknown): FailureCause {
  if (error instanceof BusyError) return 'busy';
  return isDatabaseUnreachable(error) ? 'outage' : 'job';
}

/** After an abort a failure tells nothing, but what was finished is finished. */
function hasResult<Payload>(tried: Tried<Payload>): boolean {
  return tried.kind === 'outcome' && tried.outcome.kind !== 'retry';
}
