import type { Clock } from '../platform/clock';
import type { Metrics } from '../platform/metrics';
import type { Lease } from '../queue/worker-queue';
import type { Connectivity } from './connectivity';
import type { WorkerEvents } from './worker-events';

/** The part of a queue that the keeper uses. */
export interface RenewableQueue {
  readonly leaseMs: number;
  renew(leases: readonly Lease[]): Promise<{ lost: Lease[] }>;
}

export interface LeaseKeeperOptions {
  clock: Clock;
  events: WorkerEvents;
  connectivity: Connectivity;
  metrics: Metrics;
}

export interface HeldLease {
  /**
   * The job's outcome is being written. From here on a lease that is gone is the write's to find out: it may be gone because
   * the write was applied.
   */
  settling(): void;
  /** No longer ours to renew. */
  drop(): void;
}

interface Entry {
  lease: Lease;
  queue: RenewableQueue;
  onLost: () => void;
  settling: boolean;
  deadlineTimer: NodeJS.Timeout;
}

interface Beat {
  timer: NodeJS.Timeout;
  inFlight: boolean;
}

const BEATS_PER_LEASE = 3;

/**
 * Keeps the leases of one process alive: one renewal per queue and beat, a third of the lease apart. A lease that is lost, or
 * whose deadline passes before a renewal came through (the database hangs, the event loop was blocked), is reported at once.
 */
export class LeaseKeeper {
  readonly #entries = new Set<Entry>();
  readonly #beats = new Map<RenewableQueue, Beat>();

  constructor(private readonly options: LeaseKeeperOptions) {}

  get size(): number {
    return this.#entries.size;
  }

  /** `onLost` is called at most once, and never after `drop`. */
  hold(queue: RenewableQueue, lease: Lease, onLost: () => void): HeldLease {
    const entry: Entry = { lease, queue, onLost, settling: false, deadlineTimer: this.#watch(() => entry) };
    this.#entries.add(entry);
    if (!this.#beats.has(queue)) this.#beats.set(queue, { timer: this.#nextBeat(queue), inFlight: false });
    return {
      settling: () => {
        entry.settling = true;
      },
      drop: () => this.#remove(entry),
    };
  }

  /** Forgets every lease and ends the beats. Those still held run out by themselves. */
  stop(): void {
    for (const entry of this.#entries) clearTimeout(entry.deadlineTimer);
    this.#entries.clear();
    for (const { timer } of this.#beats.values()) clearTimeout(timer);
    this.#beats.clear();
  }

  #nextBeat(queue: RenewableQueue): NodeJS.Timeout {
    const afterMs = queue.leaseMs / BEATS_PER_LEASE;
    const dueMs = this.options.clock.monotonicMs() + afterMs;
    return setTimeout(() => this.#beat(queue, dueMs), afterMs);
  }

  #beat(queue: RenewableQueue, dueMs: number): void {
    const beat = this.#beats.get(queue);
    if (beat === undefined) return;
    const leases = this.#leasesOf(queue);
    if (leases.length === 0) {
      this.#beats.delete(queue);
      return;
    }
    beat.timer = this.#nextBeat(queue);
    // A call that hangs must not be piled upon; the deadlines see to the rest.
    if (beat.inFlight) return;
    beat.inFlight = true;
    void this.#renew(queue, leases, this.options.clock.monotonicMs() - dueMs).finally(() => {
      beat.inFlight = false;
    });
  }

  async #renew(queue: RenewableQueue, leases: Lease[], lagMs: number): Promise<void> {
    const { connectivity, events, metrics } = this.options;
    // How late the event loop lets a beat fire: the first sign of a handler that blocks it.
    metrics.observe('worker_renewal_lag_ms', lagMs, {});
    try {
      const { lost } = await queue.renew(leases);
      connectivity.answered();
      for (const entry of [...this.#entries].filter((held) => lost.includes(held.lease))) this.#report(entry);
      events.emit('renewed', { count: leases.length - lost.length, lost: lost.length, lagMs });
    } catch (error) {
      connectivity.failed('renewal', error);
    }
  }

  #leasesOf(queue: RenewableQueue): Lease[] {
    return [...this.#entries].filter((entry) => entry.queue === queue).map(({ lease }) => lease);
  }

  /** Fires at the deadline as it stands now; a renewal may have moved it on by then. */
  #watch(entryOf: () => Entry): NodeJS.Timeout {
    const check = (): void => {
      const entry = entryOf();
      const leftMs = entry.lease.deadlineMs - this.options.clock.monotonicMs();
      if (leftMs > 0) entry.deadlineTimer = setTimeout(check, leftMs);
      else this.#report(entry);
    };
    return setTimeout(check, 0);
  }

  #report(entry: Entry): void {
    if (!this.#entries.has(entry) || entry.settling) return;
    this.#remove(entry);
    entry.onLost();
  }

  #remove(entry: Entry): void {
    clearTimeout(entry.deadlineTimer);
    this.#entries.delete(entry);
  }
}
