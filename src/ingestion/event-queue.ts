import { systemClock, type Clock } from '../platform/clock';
import { describeFailure, PermanentError } from '../platform/errors';
import { makeWorkerId, type WorkerId } from '../platform/ids';
import { silentLogger, type Logger } from '../platform/logger';
import { EventDeadLetters } from './dead-letters';
import type { Delivery } from './delivery';
import { DeliveryDiscard } from './delivery-discard';
import { DeliveryStore, type ConsumerMode } from './delivery-store';
import type { RawEvent } from './event-source';
import { EventStore, type IntakePage, type StoreResult } from './event-store';
import { FollowedContracts } from './followed-contracts';
import { deleteQueueFile, isFull, openQueueFile, type QueueFile } from './queue-file';
import { QueueMaintenance } from './queue-maintenance';
import { makeStatsReader, type EventQueueStats } from './queue-stats';
import { emptyLog } from './storage-room';

export interface EventQueueOptions {
  logger?: Logger;
  clock?: Clock;
  holder?: WorkerId;
  /** How long a dequeued event stays with its taker before another may have it. */
  leaseMs?: number;
  /** Back-off before try n+1 is min(maxRetryDelayMs, retryDelayMs × 2^n). 0 retries at once. */
  retryDelayMs?: number;
  maxRetryDelayMs?: number;
  maxFileBytes?: number;
  minFreeDiskBytes?: number;
  /** How long a write waits for another process's transaction, milliseconds. */
  busyTimeoutMs?: number;
  /** See {@link QueueFileOptions.mustExist}. */
  mustExist?: boolean;
  /** `handlers` where a dispatcher empties the queue; `direct` where the caller does, with `dequeue`. */
  consumers?: ConsumerMode;
}

export interface QueuedEvent {
  id: string;
  eventData: RawEvent;
  status: 'processing';
  /** Tries so far, this one included. */
  attempts: number;
}

const DIRECT = 'direct';
const ROUTE_BATCH = 200;
const DEFAULTS = {
  leaseMs: 30_000,
  retryDelayMs: 1_000,
  maxRetryDelayMs: 60_000,
  minFreeDiskBytes: 32 * 1024 * 1024,
};

/**
 * A persistent buffer between the chain and whoever handles its events: one SQLite file, safe to share between the
 * processes of one host. Storage errors are thrown, never turned into an empty answer.
 */
export class EventQueue {
  readonly store: EventStore;
  readonly deliveries: DeliveryStore;
  readonly deadLetters: EventDeadLetters;
  readonly discards: DeliveryDiscard;
  readonly followed: FollowedContracts;
  readonly maintenance: QueueMaintenance;
  readonly getStats: () => EventQueueStats;
  private readonly file: QueueFile;
  private readonly clock: Clock;
  private readonly logger: Logger;
  private readonly delays: { retryDelayMs: number; maxRetryDelayMs: number };
  /** Dequeued and not yet marked, by event id. */
  private readonly taken = new Map<string, Delivery>();

  /** @param maxRetries tries per event in all, deaths of its taker included */
  constructor(
    readonly path = './event-queue.db',
    private readonly maxRetries = 3,
    options: EventQueueOptions = {},
  ) {
    const {
      clock = systemClock,
      logger = silentLogger(),
      holder = makeWorkerId(),
      maxFileBytes,
      busyTimeoutMs,
      mustExist = false,
    } = options;
    const { minFreeDiskBytes, leaseMs, ...delays } = { ...DEFAULTS, ...options };
    const bound = maxFileBytes === undefined ? {} : { maxFileBytes };
    this.clock = clock;
    this.logger = logger;
    this.delays = delays;
    const patience = busyTimeoutMs === undefined ? {} : { busyTimeoutMs };
    this.file = openQueueFile({ path, logger, mustExist, ...bound, ...patience });
    this.store = new EventStore(this.file, clock, { minFreeDiskBytes, ...bound });
    this.deliveries = new DeliveryStore(this.file, clock, holder, leaseMs, options.consumers ?? 'direct');
    this.deadLetters = new EventDeadLetters(this.file.db, clock);
    this.discards = new DeliveryDiscard(this.file.db, this.deliveries, this.deadLetters);
    this.followed = new FollowedContracts(this.file.db);
    this.maintenance = new QueueMaintenance(this.file.db, clock);
    this.getStats = makeStatsReader(this.file.db, clock);
  }

  /** Where an unreadable file was moved to when this one was opened, or null. */
  get setAside(): string | null {
    return this.file.setAside;
  }

  /** True when the event is in the queue, now or already before; false when there is no room (nothing is lost: offer it again). */
  enqueue(event: RawEvent): boolean {
    return this.enqueueBatch({ events: [event], contractIds: [], position: null }).kind === 'stored';
  }

  /** Stores a page and the cursor behind it in one transaction. */
  enqueueBatch(page: IntakePage): StoreResult {
    const result = this.store.storePage(page);
    if (result.kind === 'full') {
      this.logger.warn(
        { path: this.path, reason: result.reason },
        'the event queue is full: nothing was stored',
      );
    }
    return result;
  }

  /** Takes the oldest event that is due, or null. It has to be marked before its lease ends. */
  dequeue(): QueuedEvent | null {
    this.deliveries.promoteDue();
    const batch = this.deliveries.claimSuspect([DIRECT]) ?? this.deliveries.claim([this.claimOne])[0];
    if (batch?.[0] !== undefined) return this.take(batch[0]);
    const unrouted = this.deliveries.unrouted(ROUTE_BATCH);
    if (unrouted.rows.length === 0) return this.deliveries.reclaim() > 0 ? this.dequeue() : null;
    const to = [{ handler: DIRECT, ordered: false, maxAttempts: this.maxRetries }];
    this.deliveries.route(
      unrouted.from,
      unrouted.rows.map(({ seq, contract }) => ({ kind: 'deliver', seq, contract, to })),
    );
    return this.dequeue();
  }

  /** False when the lease was lost meanwhile: someone else has the event now. */
  markProcessed(id: string): boolean {
    const delivery = this.forget(id);
    return delivery !== null && this.deliveries.settle([{ delivery, result: { kind: 'done' } }]).length === 0;
  }

  /** Another try after back-off, or `failed` when the tries are spent. False when the lease was lost meanwhile. */
  markFailed(id: string, error: unknown): boolean {
    const delivery = this.forget(id);
    if (delivery === null) return false;
    const { code, message } = describeFailure(error);
    const { retryDelayMs, maxRetryDelayMs } = this.delays;
    const delayMs = Math.min(maxRetryDelayMs, retryDelayMs * 2 ** delivery.attempt);
    const result =
      delivery.attempt >= delivery.maxAttempts
        ? ({ kind: 'dead', code, message } as const)
        : ({ kind: 'retry', dueAt: this.clock.now() + delayMs, code, message } as const);
    return this.deliveries.settle([{ delivery, result }]).length === 0;
  }

  /** Takes back what a process that is gone was handling. Returns how many. */
  recoverPending(): number {
    const recovered = this.deliveries.reclaim();
    this.deliveries.promoteDue();
    return recovered;
  }

  /** Removes processed events older than `ageMs`. Failed ones stay. Returns how many. */
  cleanup(ageMs: number): number {
    let removed = 0;
    for (let some = -1; some !== 0; removed += some) some = this.maintenance.removeExpired(ageMs);
    return removed;
  }

  /** Removes the oldest processed events, whatever their age, to let a full file go on. Returns how many. */
  makeRoom(): number {
    try {
      // First of all: even a deletion is written to the log, which may be what took the last of the disk.
      emptyLog(this.file.db);
      const removed = this.maintenance.removeOldest();
      if (removed > 0) this.maintenance.shrink();
      return removed;
    } catch (error) {
      // A disk without a single free page can't even log a deletion. Someone else has to make room.
      if (isFull(error)) return 0;
      throw error;
    }
  }

  /** Hands back what was dequeued and not marked, and closes the file. */
  close(): void {
    if (!this.file.db.open) return;
    this.deliveries.settle(
      [...this.taken.values()].map((delivery) => ({ delivery, result: { kind: 'unused' } })),
    );
    this.taken.clear();
    this.file.db.close();
  }

  /** Closes and deletes the file with all that is in it. For development. */
  deleteQueue(): void {
    this.close();
    deleteQueueFile(this.path);
  }

  private readonly claimOne = { handler: DIRECT, ordered: false, batch: 1, slots: 1 };

  private take(delivery: Delivery): QueuedEvent {
    const event = this.store.read(delivery.seq);
    if (event === null)
      throw new PermanentError('EVENT_GONE', `event number ${delivery.seq} is no longer in the file`);
    this.taken.set(event.id, delivery);
    return { id: event.id, eventData: event, status: 'processing', attempts: delivery.attempt };
  }

  private forget(id: string): Delivery | null {
    const delivery = this.taken.get(id) ?? null;
    this.taken.delete(id);
    return delivery;
  }
}
