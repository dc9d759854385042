import { randomUUID } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { sleep, systemClock, type Clock } from '../../platform/clock';
import { TransientError } from '../../platform/errors';
import type { Signer } from '../keys';
import type { ChannelRepository } from './channel-repository';
import type { ChannelHolder, StoredChannel } from './channel.model';
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
  private readonly released = new EventEmitter().setMaxListeners(0);
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

  signerOf(account: string): Signer | undefined {
    return this.options.signers.find((signer) => signer.publicKey === account);
  }

  /**
   * Waits for a free account. The token must have been announced in the submission before.
   * @throws TransientError NO_FREE_CHANNEL after `waitMs`; the signal's reason when it aborts.
   */
  async acquire(holder: ChannelHolder, waitMs: number, signal: AbortSignal): Promise<LeasedChannel> {
    await this.register();
    const deadlineMs = this.clock.monotonicMs() + waitMs;
    for (let pollMs = POLL_MS; ; pollMs = Math.min(MAX_POLL_MS, pollMs * 1.5)) {
      signal.throwIfAborted();
      const leased = await this.tryAcquire(holder);
      if (leased !== null) return leased;
      const leftMs = deadlineMs - this.clock.monotonicMs();
      if (leftMs <= 0) {
        throw new TransientError('NO_FREE_CHANNEL', 'every source account has a transaction on its way', {
          retryAfterMs: RETRY_HINT_MS,
        });
      }
      await this.waitForRelease(Math.min(leftMs, pollMs * (0.5 + Math.random())), signal);
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
    const knownLedger = settled && 'ledger' in settled ? settled.ledger : 0;
    const freed = await this.options.channels.release(account, token, knownLedger);
    if (freed) this.released.emit('released');
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

  private async tryAcquire(holder: ChannelHolder): Promise<LeasedChannel | null> {
    const stored = shuffled(await this.options.channels.list(this.accounts));
    for (const channel of stored) {
      if (channel.holder === null) {
        const leased = await this.lease(channel, holder);
        if (leased !== null) return leased;
      }
    }
    // All taken: look after the left-behind ones now and then, not at every poll of every waiting lane.
    if (this.clock.monotonicMs() - this.reclaimedAtMs < RECLAIM_EVERY_MS) return null;
    this.reclaimedAtMs = this.clock.monotonicMs();
    await this.reclaim();
    return null;
  }

  private async lease(channel: StoredChannel, holder: ChannelHolder): Promise<LeasedChannel | null> {
    const signer = this.signerOf(channel._id);
    const leased = signer && (await this.options.channels.lease(channel._id, holder));
    return leased ? { signer, epoch: leased.epoch, lastLedger: leased.lastLedger } : null;
  }

  private register(): Promise<void> {
    this.registered ??= this.options.channels.register(this.accounts).catch((error: unknown) => {
      this.registered = null;
      throw error;
    });
    return this.registered;
  }

  private async waitForRelease(ms: number, signal: AbortSignal): Promise<void> {
    const woken = new AbortController();
    const wake = (): void => woken.abort();
    this.released.once('released', wake);
    signal.addEventListener('abort', wake, { once: true });
    try {
      await sleep(ms, woken.signal);
    } finally {
      this.released.off('released', wake);
      signal.removeEventListener('abort', wake);
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
