import { randomUUID } from 'node:crypto';
import { sleep, systemClock, type Clock } from '../../platform/clock';
import { BusyError } from '../../platform/errors';
import type { Signer } from '../keys';
import type { ChannelRepository } from './channel-repository';
import type { ChannelHolder } from './channel.model';
import type { SubmissionRepository } from './submission-repository';

export interface ChannelPoolOptions {
  signers: readonly Signer[];
  channels: ChannelRepository;
  submissions: SubmissionRepository;
  /** How long a process may take from leasing a channel to storing the signed transaction. */
  buildLeaseMs: number;
  clock?: Clock;
}

export interface LeasedChannel {
  signer: Signer;
  epoch: number;
  /** The node that reads its sequence has to know at least this ledger. */
  lastLedger: number;
}

const POLL_MS = 100;
const MAX_POLL_MS = 1_000;
const RECLAIM_EVERY_MS = 1_000;
const RETRY_HINT_MS = 2_000;

/**
 * Source accounts, leased across processes through the database. A lease has no expiry of its own while a signed
 * transaction hangs on it: only the transaction's end frees it. A lease under which nothing was signed ends when the
 * announcement in the submission is taken back, after which the late signer can no longer commit.
 */
export class ChannelPool {
  /** Lanes of this process that wait for an account, longest first. */
  private waiting: ((account: string) => void)[] = [];
  private readonly clock: Clock;
  private registered: Promise<void> | null = null;
  private reclaimedAtMs = Number.NEGATIVE_INFINITY;

  constructor(private readonly options: ChannelPoolOptions) {
    this.clock = options.clock ?? systemClock;
  }

  get accounts(): string[] {
    return this.options.signers.map((signer) => signer.publicKey);
  }

  /** A token that no lease had before. */
  static makeToken(): string {
    return randomUUID();
  }

  /**
   * Waits for a free account. The token must have been announced in the submission before.
   * @throws BusyError NO_FREE_CHANNEL after `waitMs`; the signal's reason when it aborts.
   */
  async acquire(holder: ChannelHolder, waitMs: number, signal: AbortSignal): Promise<LeasedChannel> {
    await this.register();
    const deadlineMs = this.clock.monotonicMs() + waitMs;
    let freed: string | undefined;
    for (let pollMs = POLL_MS; ; pollMs = Math.min(MAX_POLL_MS, pollMs * 1.5)) {
      signal.throwIfAborted();
      const leased = await this.tryAcquire(holder, freed);
      if (leased !== null) return leased;
      const leftMs = deadlineMs - this.clock.monotonicMs();
      if (leftMs <= 0) {
        throw new BusyError('NO_FREE_CHANNEL', 'every source account has a transaction on its way', {
          retryAfterMs: RETRY_HINT_MS,
        });
      }
      freed = await this.waitForRelease(Math.min(leftMs, pollMs * (0.5 + Math.random())), signal);
    }
  }

  /**
   * Frees an account unless a signed transaction, or a signature in the making, hangs on it. Safe to call at any time
   * by anyone: it looks at the submission first.
   */
  async releaseIfIdle(account: string, { intent, token }: ChannelHolder): Promise<boolean> {
    const submission = await this.options.submissions.find(intent);
    if (submission?.attempt?.token === token) return false;
    if (submission?.building?.token === token) {
      const overdue = await this.options.channels.isHeldLongerThan(account, token, this.options.buildLeaseMs);
      // Taken back before the account is freed: the signer that wakes up late finds that it can't commit any more.
      if (!overdue || !(await this.options.submissions.abandonBuilding(intent, token))) return false;
    }
    const settled = submission?.settled;
    return this.release(account, token, settled && 'ledger' in settled ? settled.ledger : 0);
  }

  /** Frees an account whose attempt is known to have ended. `knownLedger`: see {@link LeasedChannel.lastLedger}. */
  async release(account: string, token: string, knownLedger: number): Promise<boolean> {
    const freed = await this.options.channels.release(account, token, knownLedger);
    if (freed) this.waiting.shift()?.(account);
    return freed;
  }

  /** Frees what crashed holders left behind. Returns how many. */
  async reclaim(): Promise<number> {
    let freed = 0;
    for (const { _id, holder } of await this.options.channels.list(this.accounts)) {
      if (holder !== null && (await this.releaseIfIdle(_id, holder))) freed += 1;
    }
    return freed;
  }

  /** `freed` is one that this process has just released: most likely it is still free. */
  private async tryAcquire(holder: ChannelHolder, freed: string | undefined): Promise<LeasedChannel | null> {
    const handedOver = freed === undefined ? null : await this.lease(freed, holder);
    if (handedOver !== null) return handedOver;
    const stored = shuffled(await this.options.channels.list(this.accounts));
    for (const channel of stored) {
      if (channel.holder === null) {
        const leased = await this.lease(channel._id, holder);
        if (leased !== null) return leased;
      }
    }
    // All taken: look after the left-behind ones now and then, not at every poll of every waiting lane.
    if (this.clock.monotonicMs() - this.reclaimedAtMs < RECLAIM_EVERY_MS) return null;
    this.reclaimedAtMs = this.clock.monotonicMs();
    await this.reclaim();
    return null;
  }

  private async lease(account: string, holder: ChannelHolder): Promise<LeasedChannel | null> {
    const signer = this.options.signers.find((one) => one.publicKey === account);
    const leased = signer && (await this.options.channels.lease(account, holder));
    return leased ? { signer, epoch: leased.epoch, lastLedger: leased.lastLedger } : null;
  }

  private register(): Promise<void> {
    this.registered ??= this.options.channels.register(this.accounts).catch((error: unknown) => {
      this.registered = null;
      throw error;
    });
    return this.registered;
  }

  /** Wakes one waiter for one release; the others go on waiting. */
  private async waitForRelease(ms: number, signal: AbortSignal): Promise<string | undefined> {
    const woken = new AbortController();
    let freed: string | undefined;
    const wake = (account: string): void => {
      freed = account;
      woken.abort();
    };
    const abort = (): void => woken.abort();
    this.waiting.push(wake);
    signal.addEventListener('abort', abort, { once: true });
    try {
      await sleep(ms, woken.signal);
      return freed;
    } finally {
      this.waiting = this.waiting.filter((one) => one !== wake);
      signal.removeEventListener('abort', abort);
    }
  }
}

/** So that processes don't all reach for the same account first. */
function shuffled<T>(items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, key: Math.random() }))
    .sort((a, b) => a.key - b.key)
    .map(({ item }) => item);
}
