import { SorolaneError } from '../../platform/errors';
import type { Logger } from '../../platform/logger';
import type { Metrics } from '../../platform/metrics';
import { isHopeless, readResultCodes } from '../chain/result-codec';
import { neededBid, signFeeBump } from '../chain/transaction-codec';
import type { Signer } from '../keys';
import { RpcRefusedError } from '../rpc/rpc-errors';
import type { SendReply, SorobanRpc } from '../rpc/soroban-rpc';
import type { AttemptTracker } from './attempt-tracker';
import type { LastReply } from './next-move';
import type { SubmissionRepository } from './submission-repository';
import type { Settled, StoredAttempt, StoredSubmission } from './submission.model';

export interface EnvelopeSenderOptions {
  rpc: SorobanRpc;
  submissions: SubmissionRepository;
  tracker: AttemptTracker;
  /** Pays for fee bumps. */
  payer: Signer;
  networkPassphrase: string;
  metrics: Metrics;
  logger: Logger;
}

export type SendResult =
  | { kind: 'replied'; reply: LastReply }
  | { kind: 'settled'; settled: Settled }
  /** Decided, bumped or taken over by someone else meanwhile: look again. Nothing was sent. */
  | { kind: 'changed' };

const doubt: SendResult = { kind: 'replied', reply: { kind: 'none' } };

/** Hands stored envelopes to the network and reads what it answers. Sends nothing that is not stored. */
export class EnvelopeSender {
  constructor(private readonly options: EnvelopeSenderOptions) {}

  /** Sends the newest envelope. */
  async send(submission: StoredSubmission, known: StoredAttempt, signal: AbortSignal): Promise<SendResult> {
    const noted = await this.options.submissions.noteSend(submission._id, submission.epoch, known);
    if (!noted?.attempt) return { kind: 'changed' };
    return this.handOver(noted, noted.attempt, signal);
  }

  /** Sends what is counted as sent already. A missing answer is no failure: the bytes may be on their way. */
  async handOver(noted: StoredSubmission, attempt: StoredAttempt, signal: AbortSignal): Promise<SendResult> {
    const { rpc, logger } = this.options;
    if (attempt.sends > 1) this.options.metrics.count('stellar_resends_total', {});
    const { envelopeXdr } = attempt.bumps.at(-1) ?? attempt;
    try {
      const { value } = await rpc.send(envelopeXdr, {
        signal,
        stickyKey: attempt.sourceAccount,
        preferLedger: attempt.sequenceLedger,
      });
      return await this.read(noted, attempt, value, signal);
    } catch (error) {
      if (error instanceof RpcRefusedError && error.isOfParameters) {
        return this.settleUnsent(noted, attempt, { kind: 'refused', hash: attempt.hash, code: error.code });
      }
      if (!(error instanceof SorolaneError)) throw error;
      logger.info({ intent: noted._id, code: error.code }, 'no answer to a send; it counts as sent');
      return doubt;
    }
  }

  /** Stores a fee bump of that bid, to be sent next. False when it was not the next in line. */
  async bump(submission: StoredSubmission, attempt: StoredAttempt, bid: bigint): Promise<boolean> {
    const { submissions, payer, networkPassphrase, metrics, logger } = this.options;
    const signed = await signFeeBump(attempt.envelopeXdr, payer, bid, networkPassphrase);
    const bump = { ...signed, feeBid: bid.toString() };
    const stored = await submissions.addBump(submission._id, submission.epoch, attempt, bump);
    if (stored) {
      metrics.count('stellar_fee_bumps_total', {});
      metrics.observe('stellar_fee_bid_stroops', Number(bid), { fee_class: 'bump' });
      logger.info(
        { intent: submission._id, hash: attempt.hash, bump: signed.hash, bid: bump.feeBid },
        'fee bumped',
      );
    }
    return stored;
  }

  private async read(
    submission: StoredSubmission,
    attempt: StoredAttempt,
    reply: SendReply,
    signal: AbortSignal,
  ): Promise<SendResult> {
    const { submissions } = this.options;
    switch (reply.status) {
      case 'PENDING':
        await submissions.noteAccepted(submission._id, attempt, reply.latestLedger);
        return { kind: 'replied', reply: { kind: 'accepted' } };
      case 'DUPLICATE':
        if (attempt.acceptedAtLedger === null) {
          await submissions.noteAccepted(submission._id, attempt, reply.latestLedger);
        }
        return { kind: 'replied', reply: { kind: 'accepted' } };
      case 'TRY_AGAIN_LATER':
        return { kind: 'replied', reply: { kind: 'try_again' } };
      case 'ERROR':
        return this.readError(submission, attempt, reply, signal);
    }
  }

  private async readError(
    submission: StoredSubmission,
    attempt: StoredAttempt,
    reply: SendReply,
    signal: AbortSignal,
  ): Promise<SendResult> {
    const { tracker, metrics, logger } = this.options;
    // A node refuses what is already in a ledger, so its refusal proves nothing before we have looked.
    const verdict = await tracker.follow(submission, attempt, signal);
    if (verdict.kind === 'settled') return verdict;
    if (reply.errorResultXdr === undefined) return doubt;
    const codes = readResultCodes(reply.errorResultXdr);
    metrics.count('stellar_send_errors_total', { code: codes.transaction });
    logger.warn(
      { intent: submission._id, hash: attempt.hash, code: codes.transaction },
      'a node refused a transaction',
    );
    if (codes.transaction === 'txInsufficientFee') {
      const bid = neededBid(codes.feeStroops, BigInt(attempt.resourceFee), attempt.bumps.length > 0);
      return { kind: 'replied', reply: { kind: 'low_fee', neededBid: bid } };
    }
    if (codes.transaction === 'txInsufficientBalance')
      return { kind: 'replied', reply: { kind: 'no_funds' } };
    const { hash } = attempt;
    if (isHopeless(codes)) {
      return this.settleUnsent(submission, attempt, { kind: 'refused', hash, code: codes.transaction });
    }
    // A node that has not come as far as the one that gave the number knows nothing of it yet.
    if (codes.transaction === 'txBadSeq' && reply.latestLedger >= attempt.sequenceLedger) {
      return this.settleUnsent(submission, attempt, { kind: 'expired', hash });
    }
    return doubt;
  }

  /** Only of an envelope that no other node ever had is a refusal final. Any other may be queued or landed elsewhere. */
  private async settleUnsent(
    submission: StoredSubmission,
    attempt: StoredAttempt,
    settled: Settled,
  ): Promise<SendResult> {
    const isDecided =
      attempt.sends === 1 && (await this.options.tracker.settleUnsent(submission, attempt, settled));
    return isDecided ? { kind: 'settled', settled } : doubt;
  }
}
