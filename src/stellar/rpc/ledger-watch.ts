import { sleep, type Clock } from '../../platform/clock';

/** After so many of its own pauses a waiter goes on, whatever the others saw: its node may be one that nobody else asks. */
const LONGEST_WAIT_FACTOR = 5;

/**
 * What waits for the next ledger waits together: one of them asks, and the first answer that tells of a new ledger
 * wakes them all. Between two ledgers nothing can have changed, so that the calls don't grow with the waiters.
 */
export class LedgerWatch {
  private waiting = new Set<() => void>();
  private lastTurnMs = Number.NEGATIVE_INFINITY;

  constructor(private readonly clock: Clock) {}

  /** A node is a ledger further than it was. Only a hint: how far nodes say they are may be wrong. */
  advanced(): void {
    const woken = this.waiting;
    this.waiting = new Set();
    for (const wake of woken) wake();
  }

  /** Resolves when a node has got further, when it is the caller's turn to ask, or after `maxMs`. */
  async next({ pollMs, maxMs }: { pollMs: number; maxMs: number }, signal: AbortSignal): Promise<void> {
    const endMs = this.clock.monotonicMs() + Math.min(maxMs, pollMs * LONGEST_WAIT_FACTOR);
    let dueMs = this.clock.monotonicMs() + uneven(pollMs);
    for (;;) {
      const hasAdvanced = await this.waitUntil(Math.min(dueMs, endMs), signal);
      const nowMs = this.clock.monotonicMs();
      if (hasAdvanced || signal.aborted || nowMs >= endMs) return;
      if (nowMs - this.lastTurnMs >= pollMs) {
        this.lastTurnMs = nowMs;
        return;
      }
      dueMs = this.lastTurnMs + uneven(pollMs);
    }
  }

  /** True when a node got further within that time. Asks nothing. */
  hint(maxMs: number, signal: AbortSignal): Promise<boolean> {
    return this.waitUntil(this.clock.monotonicMs() + maxMs, signal);
  }

  private async waitUntil(atMs: number, signal: AbortSignal): Promise<boolean> {
    const over = new AbortController();
    let woken = false;
    const wake = (): void => {
      woken = true;
      over.abort();
    };
    const abort = (): void => over.abort();
    this.waiting.add(wake);
    signal.addEventListener('abort', abort, { once: true });
    try {
      if (!signal.aborted) await sleep(Math.max(0, atMs - this.clock.monotonicMs()), over.signal);
      return woken;
    } finally {
      this.waiting.delete(wake);
      signal.removeEventListener('abort', abort);
    }
  }
}

/** A little more than asked for, so that those that began together don't all come due at once. */
const uneven = (ms: number): number => ms * (1 + 0.2 * Math.random());
