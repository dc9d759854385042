import { randomUUID } from 'node:crypto';
import { sleep, systemClock, type Clock } from '../../platform/clock';
import { BusyError } from '../../platform/errors';
import type { Logger } from '../../platform/logger';
import type { Signer } from '../keys';
import type { ChannelRepository, LastUse } from './channel-repository';
import type { ChannelHolder } from './channel.model';
import type { SubmissionRepository } from './submission-repository';
import type { StoredSubmission } from './submission.model';

export interface ChannelPoolOptions {
  signers: readonly Signer[];
  channels: ChannelRepository;
  submissions: SubmissionRepository;
  /** How long a process may take from leasing a channel to storing the signed transaction. */
  buildLeaseMs: number;
  /** Looks at the chain for those of these attempts that it has decided, and frees their accounts. */
  settleLanded: (undecided: readonly StoredSubmission[]) => Promise<void>;
  /** Waits for so long, or until a ledger is known to have closed: true then. */
  nextLedger: (maxMs: number) => Promise<boolean>;
  logger: Logger;
  clock?: Clock;
}

export interface LeasedChannel {
  signer: Signer;
  epoch: number;
  /** The node that reads its sequence, or takes a transaction of it, has to know at least this ledger. */
  lastLedger: number;
  /** As its last transaction left it in that ledger; null when only the network knows. */
  sequence: bigint | null;
}

/** Who wants an account. */
export interface WantedChannel extends ChannelHolder {
  /** Goes before ordinary ones that are not much older, in every process. */
  isUrgent: boolean;
  /** Since when it is wanted, epoch ms; tries that found no account don't begin anew. */
  sinceMs: number;
}

interface Waiter {
  /** See {@link rankOf}. */
  rank: number;
  wake: (account: string) => void;
}

const POLL_MS = 60;
const MAX_POLL_MS = 500;
const POLL_GROWTH = 1.3;
const SCOUT_AGAIN_MS = 1_000;
const RESERVE_MS = 3 * SCOUT_AGAIN_MS;
/** By so much an urgent transaction overtakes ordinary ones that have waited longer. */
const HEAD_START_MS = 60_000;
const PATIENCE_MS = 10_000;
const RECLAIM_EVERY_MS = 500;
const RETRY_HINT_MS = 2_000;
/**
 * By then every node that is of use knows the ledger of an account's last transaction. One that no node knows (the network
 * began anew, or a node told a wrong number) must not keep the account out of use for ever.
 */
const LAST_USE_MATTERS_MS = 600_000;

/**
 * Source accounts, leased across processes through the database. A lease has no expiry of its own while a signed
 * transaction hangs on it: only the transaction's end frees it. A lease under which nothing was signed ends when the
 * announcement in the submission is taken back, after which the late signer can no longer commit.
 */
export class ChannelPool {
  /** Lanes of this process that wait for an account, in no order. */
  private waiting: Waiter[] = [];
  private isScouting = false;
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
   * @throws BusyError NO_FREE_CHANNEL after `waitMs`, or when the signal aborts: whose deadline it was that passed while
   * nothing was free, nothing was tried.
   */
  async acquire(wanted: WantedChannel, waitMs: number, signal: AbortSignal): Promise<LeasedChannel> {
    await this.register();
    const leased = await this.leaseAny(wanted);
    if (leased !== null) return leased;
    try {
      return await this.acquireInTurn(wanted, waitMs, signal);
    } finally {
      if (mayReserve(wanted, this.clock)) await this.options.channels.unreserve(this.accounts, wanted.token);
    }
  }

  private async acquireInTurn(
    wanted: WantedChannel,
    waitMs: number,
    signal: AbortSignal,
  ): Promise<LeasedChannel> {
    const deadlineMs = this.clock.monotonicMs() + waitMs;
    let leased: LeasedChannel | null = null;
    while (leased === null) {
      const leftMs = deadlineMs - this.clock.monotonicMs();
      if (leftMs <= 0 || signal.aborted) {
        throw new BusyError('NO_FREE_CHANNEL', 'every source account has a transaction on its way', {
          retryAfterMs: RETRY_HINT_MS,
        });
      }
      if (mayReserve(wanted, this.clock)) await this.reserveNext(wanted);
      const freed = await this.waitForRelease(rankOf(wanted), Math.min(leftMs, SCOUT_AGAIN_MS), signal);
      // What was freed may be kept for another; any other will do.
      leased =
        freed === undefined ? null : ((await this.lease(freed, wanted)) ?? (await this.leaseAny(wanted)));
    }
    return leased;
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
    const ledger = settled && 'ledger' in settled ? settled.ledger : 0;
    return this.release(account, token, { ledger, sequence: null });
  }

  /** Frees an account whose attempt is known to have ended. */
  async release(account: string, token: string, lastUse: LastUse): Promise<boolean> {
    const freed = await this.options.channels.release(account, token, lastUse);
    if (freed) this.wakeNext(account);
    return freed;
  }

  /** Frees what crashed holders left behind. Returns how many. */
  async reclaim(): Promise<number> {
    return (await this.inspect()).freed;
  }

  /** What became of the accounts in use: how many could be freed, and the attempts that hold the others. */
  private async inspect(): Promise<{ freed: number; undecided: StoredSubmission[] }> {
    const held = (await this.options.channels.list(this.accounts)).flatMap(({ _id, holder }) =>
      holder === null ? [] : [{ account: _id, holder }],
    );
    const intents = held.map(({ holder }) => holder.intent);
    const known = new Map((await this.options.submissions.findAll(intents)).map((one) => [one._id, one]));
    const undecided: StoredSubmission[] = [];
    let freed = 0;
    for (const { account, holder } of held) {
      const submission = known.get(holder.intent);
      if (submission?.attempt?.token === holder.token) undecided.push(submission);
      else if (await this.releaseIfIdle(account, holder)) freed += 1;
    }
    return { freed, undecided };
  }

  private async leaseAny(wanted: WantedChannel): Promise<LeasedChannel | null> {
    for (const account of await this.free()) {
      const leased = await this.lease(account, wanted);
      if (leased !== null) return leased;
    }
    return null;
  }

  private async free(): Promise<string[]> {
    const stored = await this.options.channels.list(this.accounts);
    return shuffled(stored.filter(({ holder }) => holder === null).map(({ _id }) => _id));
  }

  /**
   * The account that has been out longest is the likeliest to come back. Kept for a few looks only, so that a process that
   * dies over its wait holds nobody up.
   */
  private async reserveNext(wanted: WantedChannel): Promise<void> {
    const { channels } = this.options;
    const { token } = wanted;
    const rank = rankOf(wanted);
    const stored = await channels.list(this.accounts);
    const mine = stored.find(({ reservedBy }) => reservedBy === token);
    const entitled = stored
      .filter(({ reservedRank }) => reservedRank === null || reservedRank > rank)
      .sort(
        (a, b) =>
          (b.reservedRank ?? Infinity) - (a.reservedRank ?? Infinity) ||
          (a.heldAt?.getTime() ?? 0) - (b.heldAt?.getTime() ?? 0),
      );
    // What ran out is known to the database alone: of those that seem kept by better ones, any may be free for the taking.
    for (const { _id } of [...(mine === undefined ? [] : [mine]), ...entitled, ...stored]) {
      if (await channels.reserve(_id, token, rank, RESERVE_MS)) return;
    }
  }

  private wakeNext(account: string): void {
    const [first, ...others] = this.waiting;
    if (first === undefined) return;
    const next = others.reduce((best, one) => (one.rank < best.rank ? one : best), first);
    this.waiting = this.waiting.filter((one) => one !== next);
    next.wake(account);
  }

  private async lease(account: string, { intent, token }: WantedChannel): Promise<LeasedChannel | null> {
    const { signers, channels } = this.options;
    const signer = signers.find((one) => one.publicKey === account);
    const leased = signer && (await channels.lease(account, { intent, token }));
    if (!leased) return null;
    const { epoch, lastLedger, sequence, heldAt, freedAt } = leased;
    const idleMs = heldAt && freedAt ? heldAt.getTime() - freedAt.getTime() : 0;
    if (lastLedger === 0 || idleMs <= LAST_USE_MATTERS_MS) {
      return { signer, epoch, lastLedger, sequence: sequence === null ? null : BigInt(sequence) };
    }
    await channels.forget(account, token);
    return { signer, epoch, lastLedger: 0, sequence: null };
  }

  private register(): Promise<void> {
    this.registered ??= this.options.channels.register(this.accounts).catch((error: unknown) => {
      this.registered = null;
      throw error;
    });
    return this.registered;
  }

  /** One looks for all of this process that wait: what other processes free is seen in the database alone. */
  private async scout(): Promise<void> {
    if (this.isScouting) return;
    this.isScouting = true;
    let pollMs = POLL_MS;
    try {
      while (this.waiting.length > 0) {
        const isNewLedger = await this.options.nextLedger(pollMs * (0.5 + Math.random()));
        const free = await this.free();
        for (const account of free) this.wakeNext(account);
        // Accounts get free when a ledger has closed, one soon after the other.
        const isBusy = isNewLedger || free.length > 0;
        pollMs = isBusy ? POLL_MS : Math.min(MAX_POLL_MS, pollMs * POLL_GROWTH);
        if (free.length === 0) await this.reclaimNowAndThen();
      }
    } catch (error) {
      // Those that wait send out another before long.
      this.options.logger.warn({ err: error }, 'could not look for free source accounts');
    } finally {
      this.isScouting = false;
    }
  }

  /** Those that wait do the work of a process that stalls or has died: its transactions land without it. */
  private async reclaimNowAndThen(): Promise<void> {
    if (this.clock.monotonicMs() - this.reclaimedAtMs < RECLAIM_EVERY_MS) return;
    this.reclaimedAtMs = this.clock.monotonicMs();
    const { undecided } = await this.inspect();
    if (undecided.length > 0) await this.options.settleLanded(undecided);
  }

  /** Wakes one waiter for one release; the others go on waiting. */
  private async waitForRelease(rank: number, ms: number, signal: AbortSignal): Promise<string | undefined> {
    const woken = new AbortController();
    let freed: string | undefined;
    const waiter: Waiter = {
      rank,
      wake: (account) => {
        freed = account;
        woken.abort();
      },
    };
    const abort = (): void => woken.abort();
    this.waiting.push(waiter);
    void this.scout();
    signal.addEventListener('abort', abort, { once: true });
    try {
      await sleep(ms, woken.signal);
      return freed;
    } finally {
      this.waiting = this.waiting.filter((one) => one !== waiter);
      signal.removeEventListener('abort', abort);
    }
  }
}

/** The lower goes first. Age counts for everyone, so that no stream of urgent ones keeps an ordinary one waiting for good. */
const rankOf = ({ isUrgent, sinceMs }: WantedChannel): number => sinceMs - (isUrgent ? HEAD_START_MS : 0);

/** Ordinary ones that have not waited long take what comes, which is quicker than turns for everybody. */
const mayReserve = ({ isUrgent, sinceMs }: WantedChannel, clock: Clock): boolean =>
  isUrgent || clock.now() - sinceMs > PATIENCE_MS;

/** So that processes don't all reach for the same account first. */
function shuffled<T>(items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, key: Math.random() }))
    .sort((a, b) => a.key - b.key)
    .map(({ item }) => item);
}
