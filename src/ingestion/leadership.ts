import type { Clock } from '../platform/clock';
import { describeFailure } from '../platform/errors';
import type { WorkerId } from '../platform/ids';
import type { Logger } from '../platform/logger';
import { isAhead } from './chain-position';
import type { EventStore, StreamPosition } from './event-store';
import type { IngestionStateRepository } from './ingestion-state.repository';

export interface LeadershipOptions {
  state: IngestionStateRepository;
  store: EventStore;
  holder: WorkerId;
  /** How long a leader that fell silent keeps the lead, by the database's clock, milliseconds. */
  leaseMs: number;
  clock: Clock;
  logger: Logger;
}

/**
 * One ingester leads at a time. What it shares is not its cursor but the low-water mark below which everything is
 * handled: a follower has none of the old leader's open events in its own file, so it reads them again from there, and
 * handlers, being idempotent by event identity, do nothing twice. An old leader that comes back goes on from whichever
 * is further, the shared mark or its own cursor: up to its own cursor everything is in its own file.
 */
export class Leadership {
  private epoch: number | null = null;
  private deadlineMs = 0;
  private renewal: NodeJS.Timeout | undefined;
  private lost = new AbortController();
  private sharedGaps = 0;
  private released = false;

  constructor(private readonly options: LeadershipOptions) {}

  /** Aborts when the lead is lost; a new one after each gain. */
  get signal(): AbortSignal {
    return this.lost.signal;
  }

  get leads(): boolean {
    return this.epoch !== null && this.options.clock.monotonicMs() < this.deadlineMs;
  }

  /** Takes or keeps the lead. Rejects when the database can't be reached. */
  async hold(): Promise<boolean> {
    const { state, holder, leaseMs, clock, logger } = this.options;
    const askedMs = clock.monotonicMs();
    const answer = await state.hold(holder, leaseMs);
    if (this.released) return false;
    if (answer.kind === 'following') {
      this.lose();
      return false;
    }
    this.deadlineMs = askedMs + leaseMs;
    if (this.epoch === answer.epoch) return true;
    this.lost = new AbortController();
    this.adopt(answer.checkpoints);
    this.epoch = answer.epoch;
    this.keep();
    logger.info({ epoch: answer.epoch }, 'leading event ingestion');
    return true;
  }

  /** Shares how far everything is handled, and gaps found since. */
  async checkpoint(): Promise<void> {
    const { state, store, holder } = this.options;
    if (this.epoch === null) return;
    const gaps = store.gaps();
    const news = gaps
      .slice(this.sharedGaps)
      .map(({ id: _, foundAt, ...gap }) => ({ ...gap, foundAt: new Date(foundAt) }));
    if (await state.checkpoint(holder, this.epoch, store.lowWaterMarks(), news))
      this.sharedGaps = gaps.length;
    else this.lose();
  }

  /** For good: the next one may lead at once. */
  async release(): Promise<void> {
    this.released = true;
    if (this.epoch === null) return;
    this.lose();
    await this.options.state.release(this.options.holder);
  }

  private adopt(checkpoints: ReadonlyMap<string, string>): void {
    const { store } = this.options;
    const own = store.positions();
    const moves = new Map<string, StreamPosition>();
    for (const [contractId, cursor] of checkpoints) {
      const position = own.get(contractId);
      if (position === undefined || isAhead(cursor, position)) moves.set(contractId, { cursor });
    }
    store.moveTo(moves);
  }

  /** In the background, since one round may read for longer than a lease lasts. */
  private keep(): void {
    const { clock, leaseMs, logger } = this.options;
    clearInterval(this.renewal);
    this.renewal = setInterval(() => {
      this.hold().catch((error: unknown) => {
        logger.warn({ ...describeFailure(error) }, 'the ingestion lease could not be renewed');
        if (clock.monotonicMs() >= this.deadlineMs) this.lose();
      });
    }, leaseMs / 3);
    this.renewal.unref();
  }

  private lose(): void {
    clearInterval(this.renewal);
    if (this.epoch === null) return;
    this.epoch = null;
    this.lost.abort();
    this.options.logger.warn({}, 'no longer leading event ingestion');
  }
}
