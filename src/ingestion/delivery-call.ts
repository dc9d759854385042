import type { Clock } from '../platform/clock';
import { isDatabaseUnreachable } from '../platform/database/faults';
import { describeFailure, TimeoutError, TransientError, type Failure } from '../platform/errors';
import type { Logger } from '../platform/logger';
import type { Delivery, DeliveryBatch, DeliveryResult, Settlement } from './delivery';
import type { ContractEvent, ContractFollowing, EventOutcome, EventOutcomes } from './event-handler';
import { checkedOutcome } from './event-outcome.schema';
import type { RegisteredHandler } from './handler-registry';

export interface CallOptions {
  registered: RegisteredHandler;
  batch: DeliveryBatch;
  eventOf: (delivery: Delivery) => ContractEvent;
  /** A call that runs longer is aborted and counts as failed. */
  timeoutMs: number;
  following: ContractFollowing;
  clock: Clock;
  logger: Logger;
}

const OUTAGE_RECHECK_MS = 2_000;

/** One call of a handler, from claim to result. `abort` makes its result meaningless to the caller, not to the handler. */
export class DeliveryCall {
  readonly batch: DeliveryBatch;
  private readonly controller = new AbortController();

  constructor(private readonly options: CallOptions) {
    this.batch = options.batch;
  }

  get handlerName(): string {
    return this.options.registered.handler.name;
  }

  abort(): void {
    this.controller.abort(new TransientError('DELIVERY_ABANDONED', 'the delivery was taken from this call'));
  }

  /** Runs the handler once. Never rejects: whatever goes wrong is a result. */
  async run(): Promise<Settlement[]> {
    try {
      const events = this.batch.map(this.options.eventOf);
      const outcomes = await this.withTimeout(events);
      return this.batch.map((delivery, index) => ({
        delivery,
        result: this.resultOf(delivery, outcomes?.get(events[index]?.id ?? '')),
      }));
    } catch (error) {
      const failure = describeFailure(error);
      // An outage of our own database says nothing about the event. Counted as tries, a longer one would dead-letter
      // every request that came in during it.
      if (isDatabaseUnreachable(error)) return this.postponeAll(failure);
      return this.batch.map((delivery) => ({ delivery, result: this.thrown(delivery, failure) }));
    }
  }

  private postponeAll({ code }: Failure): Settlement[] {
    const dueAt = this.options.clock.now() + OUTAGE_RECHECK_MS;
    const result: DeliveryResult = { kind: 'postponed', dueAt, reason: `the database is away (${code})` };
    return this.batch.map((delivery) => ({ delivery, result }));
  }

  private async withTimeout(events: readonly ContractEvent[]): Promise<EventOutcomes | undefined> {
    const { registered, batch, timeoutMs, following, logger } = this.options;
    const first = batch[0] as Delivery;
    const context = {
      signal: this.controller.signal,
      // Made only where it is used: most calls log nothing.
      get logger() {
        const subject = events.length === 1 ? { eventId: events[0]?.id } : { events: events.length };
        return logger.child({ handler: registered.handler.name, ...subject });
      },
      attempt: first.attempt,
      maxAttempts: first.maxAttempts,
      following,
    };
    const timer = setTimeout(() => {
      this.controller.abort(
        new TimeoutError('HANDLER_TIMEOUT', `the handler took longer than ${timeoutMs} ms`),
      );
    }, timeoutMs);
    try {
      return await Promise.race([registered.handler.handle(events, context), rejectOnAbort(context.signal)]);
    } finally {
      clearTimeout(timer);
    }
  }

  private resultOf(delivery: Delivery, told: unknown): DeliveryResult {
    if (told === undefined) return { kind: 'done' };
    let outcome: EventOutcome;
    try {
      outcome = checkedOutcome(told);
    } catch (error) {
      return this.failed(delivery, describeFailure(error));
    }
    switch (outcome.kind) {
      case 'handled':
        return { kind: 'done' };
      case 'postponed':
        return {
          kind: 'postponed',
          dueAt: this.options.clock.now() + outcome.delayMs,
          reason: outcome.reason,
        };
      case 'failed':
        return this.failed(delivery, outcome.failure);
    }
  }

  /** A batch that threw as a whole says nothing of its members: each gets a try alone, which then decides. */
  private thrown(delivery: Delivery, failure: Failure): DeliveryResult {
    if (this.batch.length === 1) return this.failed(delivery, failure);
    const { code, message, retryable } = failure;
    const delayMs = retryable ? this.backOffMs(delivery.attempt, failure) : 0;
    return { kind: 'retry', dueAt: this.options.clock.now() + delayMs, code, message };
  }

  private failed(delivery: Delivery, failure: Failure): DeliveryResult {
    const { code, message, retryable } = failure;
    if (!retryable || delivery.attempt >= delivery.maxAttempts) return { kind: 'dead', code, message };
    const dueAt = this.options.clock.now() + this.backOffMs(delivery.attempt, failure);
    return { kind: 'retry', dueAt, code, message };
  }

  /** Full jitter under an exponential cap; never sooner than the counterpart asked. */
  private backOffMs(attempt: number, failure: Failure): number {
    const { baseDelayMs, maxDelayMs } = this.options.registered.retry;
    const cap = Math.min(maxDelayMs, baseDelayMs * 2 ** (attempt - 1));
    return Math.max(failure.retryAfterMs ?? 0, Math.round(Math.random() * cap));
  }
}

/** A handler that ignores its signal must not hold a slot, a lease or a timer for ever. */
function rejectOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}
