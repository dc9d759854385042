import type { Clock } from '../platform/clock';
import { describeFailure } from '../platform/errors';
import type { WorkerId } from '../platform/ids';
import type { Logger } from '../platform/logger';
import { isAhead, nextLedger } from './chain-position';
import type { EventQueue } from './event-queue';
import type { StreamPosition } from './event-store';
import type { IngestionStateRepository, LeadingState } from './ingestion-state.repository';

export interface LeadershipOptions {
  state: IngestionStateRepository;
  queue: EventQueue;
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
  /** Contracts that the shared state has a mark for, as far as we know. */
  private sharedContracts: readonly string[] = [];
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
    this.adopt(answer);
    this.epoch = answer.epoch;
    this.keep();
    logger.info({ epoch: answer.epoch }, 'leading event ingestion');
    return true;
  }

  /** Shares how far everything is handled, what is followed, and gaps found since. */
  async checkpoint(): Promise<void> {
    const { state, queue, holder } = this.options;
    if (this.epoch === null) return;
    const gaps = queue.store.gaps();
    const news = gaps
      .slice(this.sharedGaps)
      .map(({ id: _, foundAt, ...gap }) => ({ ...gap, foundAt: new Date(foundAt) }));
    // The marks first: a contract is followed before the event that told of it is done, so the list covers the marks.
    const marks = queue.store.lowWaterMarks();
    const followed = queue.followed.list();
    const dropped = this.sharedContracts.filter((contractId) => !marks.has(contractId));
    const progress = { marks, followed, dropped, gaps: news, tip: queue.store.tip() };
    if (!(await state.checkpoint(holder, this.epoch, progress))) {
      this.lose();
      return;
    }
    this.sharedGaps = gaps.length;
    this.sharedContracts = [...marks.keys()];
  }

  /** For good: the next one may lead at once. */
  async release(): Promise<void> {
    this.released = true;
    if (this.epoch === null) return;
    this.lose();
    await this.options.state.release(this.options.holder);
  }

  /** What was followed meanwhile comes with its mark; what we follow beyond that was found behind the shared marks. */
  private adopt({ checkpoints, followed, tip }: LeadingState): void {
    const { queue } = this.options;
    const own = queue.store.positions();
    const moves = new Map<string, StreamPosition>();
    for (const [contractId, cursor] of checkpoints) {
      const position = own.get(contractId);
      if (position === undefined || isAhead(cursor, position)) moves.set(contractId, { cursor });
    }
    queue.store.moveTo(moves);
    if (tip !== null) queue.store.raiseTip(tip);
    for (const contractId of followed) {
      const ledger = nextLedger(checkpoints.get(contractId) ?? '');
      queue.followed.follow(contractId, ledger ?? 1);
    }
    this.sharedContracts = [...checkpoints.keys()];
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
    if (this.released) this.options.logger.info({}, 'the lead of event ingestion was given up');
    else this.options.logger.warn({}, 'no longer leading event ingestion');
  }
}
