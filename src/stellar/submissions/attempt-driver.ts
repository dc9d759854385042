import { sleep, type Clock } from '../../platform/clock';
import { SorolaneError } from '../../platform/errors';
import type { Logger } from '../../platform/logger';
import type { LedgerWatch } from '../rpc/ledger-watch';
import type { FeeClass, IntentId, TransactionHash } from '../submission';
import type { AttemptTracker, Verdict } from './attempt-tracker';
import type { EnvelopeSender } from './envelope-sender';
import type { FeePolicy } from './fee-policy';
import { nextMove, type LastReply } from './next-move';
import type { SubmissionRepository } from './submission-repository';
import type { Settled, StoredAttempt, StoredSubmission } from './submission.model';

export interface AttemptDriverOptions {
  submissions: SubmissionRepository;
  tracker: AttemptTracker;
  sender: EnvelopeSender;
  fees: FeePolicy;
  ledgers: LedgerWatch;
  /** Pays for fee bumps. */
  payer: string;
  pollIntervalMs: number;
  bumpAfterLedgers: number;
  clock: Clock;
  logger: Logger;
}

export type Driven =
  | { kind: 'settled'; settled: Settled }
  | { kind: 'unknown'; hash: TransactionHash }
  | { kind: 'superseded' }
  /** There is no attempt, and none has ended. */
  | { kind: 'nothing' };

export interface DriveOptions {
  timeoutMs: number;
  signal: AbortSignal;
  /** The submission as the caller has just read it. */
  opened?: StoredSubmission | null;
}

const POLL_GROWTH = 1.2;
const MAX_POLL_FACTOR = 3;

/** Keeps at an attempt until the chain has decided: looks for it, sends the same bytes again, raises the fee. */
export class AttemptDriver {
  constructor(private readonly options: AttemptDriverOptions) {}

  async drive(
    { intent, epoch, feeClass }: { intent: IntentId; epoch: number; feeClass: FeeClass },
    { timeoutMs, signal, opened = null }: DriveOptions,
  ): Promise<Driven> {
    const { submissions, clock, pollIntervalMs, ledgers } = this.options;
    const deadlineMs = clock.monotonicMs() + timeoutMs;
    let reply: LastReply | null = null;
    let known = opened;
    for (
      let pollMs = pollIntervalMs;
      ;
      pollMs = Math.min(pollIntervalMs * MAX_POLL_FACTOR, pollMs * POLL_GROWTH)
    ) {
      const submission = known ?? (await submissions.find(intent));
      known = null;
      if (submission === null) return { kind: 'nothing' };
      if (submission.epoch > epoch) return { kind: 'superseded' };
      const { attempt, settled } = submission;
      if (attempt === null) return settled === null ? { kind: 'nothing' } : { kind: 'settled', settled };
      reply ??= { kind: attempt.acceptedAtLedger === null ? 'none' : 'accepted' };

      const verdict = await this.look(submission, attempt, signal);
      if (verdict?.kind === 'settled') return verdict;
      if (verdict !== null) {
        const sent = await this.push(submission, attempt, verdict.latestLedger, reply, feeClass, signal);
        if (sent?.kind === 'settled') return sent;
        if (sent?.kind === 'replied') reply = sent.reply;
      }

      const leftMs = deadlineMs - clock.monotonicMs();
      if (leftMs <= 0) return { kind: 'unknown', hash: attempt.hash };
      // In a queue, only a ledger changes anything. What no node is known to have is worth another try before that.
      if (verdict !== null && reply.kind === 'accepted') {
        await ledgers.next({ pollMs, maxMs: leftMs }, signal);
      } else {
        await sleep(Math.min(leftMs, pollMs * (0.9 + 0.2 * Math.random())), signal);
      }
      signal.throwIfAborted();
    }
  }

  /** Null when no node could be asked: that says nothing about the transaction. */
  private async look(
    submission: StoredSubmission,
    attempt: StoredAttempt,
    signal: AbortSignal,
  ): Promise<Verdict | null> {
    try {
      return await this.options.tracker.follow(submission, attempt, signal);
    } catch (error) {
      signal.throwIfAborted();
      // A refusal to answer says no more than silence: what was asked is never wrong.
      if (!(error instanceof SorolaneError)) throw error;
      this.options.logger.info(
        { intent: submission._id, code: error.code },
        'no node could be asked; looking again',
      );
      return null;
    }
  }

  private async push(
    submission: StoredSubmission,
    attempt: StoredAttempt,
    latestLedger: number,
    lastReply: LastReply,
    feeClass: FeeClass,
    signal: AbortSignal,
  ) {
    const { fees, sender, bumpAfterLedgers, payer } = this.options;
    const move = nextMove({
      lastReply,
      latestLedger,
      acceptedAtLedger: attempt.acceptedAtLedger,
      currentBid: BigInt((attempt.bumps.at(-1) ?? attempt).feeBid),
      recommendedBid: await fees.bid(feeClass, signal),
      cap: fees.cap(feeClass),
      bumpAfterLedgers,
      isPaidBySource: attempt.bumps.length === 0 && attempt.sourceAccount !== payer,
    });
    if (move.kind === 'wait') return null;
    // A bump that was stored is the newest envelope: the send takes it from the database.
    if (move.kind === 'bump') await sender.bump(submission, attempt, move.bid);
    return sender.send(submission, attempt, signal);
  }
}
