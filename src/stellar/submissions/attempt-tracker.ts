import { SorolaneError } from '../../platform/errors';
import type { Logger } from '../../platform/logger';
import type { Metrics } from '../../platform/metrics';
import { readLanded } from '../chain/result-codec';
import { accountLedgerKey, readAccountEntry } from '../chain/transaction-codec';
import type { Endpoint } from '../rpc/endpoint';
import type { Ask, LandedTransaction, SorobanRpc, TransactionReply } from '../rpc/soroban-rpc';
import type { TransactionHash } from '../submission';
import type { ChannelPool } from './channel-pool';
import type { SubmissionRepository } from './submission-repository';
import type { Settled, StoredAttempt, StoredSubmission } from './submission.model';

export interface AttemptTrackerOptions {
  rpc: SorobanRpc;
  submissions: SubmissionRepository;
  channels: ChannelPool;
  metrics: Metrics;
  logger: Logger;
}

export type Verdict =
  | { kind: 'settled'; settled: Settled }
  /** In no ledger up to `latestLedger`; it still may come. */
  | { kind: 'pending'; latestLedger: number };

type NotFound = Extract<TransactionReply, { status: 'NOT_FOUND' }>;

interface Landed {
  kind: 'landed';
  hash: TransactionHash;
  transaction: LandedTransaction;
}

type Sighting = Landed | { kind: 'absent'; reply: NotFound; endpoint: Endpoint };

/** Finds out on chain what became of an attempt, and writes it down. */
export class AttemptTracker {
  constructor(private readonly options: AttemptTrackerOptions) {}

  /** Looks once; settles the attempt and frees its account when it is decided. */
  async follow(submission: StoredSubmission, attempt: StoredAttempt, signal: AbortSignal): Promise<Verdict> {
    const verdict = await this.judge(attempt, signal);
    if (verdict.kind === 'settled') await this.settle(submission, attempt, verdict.settled);
    return verdict;
  }

  async settle(submission: StoredSubmission, attempt: StoredAttempt, settled: Settled): Promise<void> {
    const { submissions, channels } = this.options;
    const isFirst = await submissions.settle(submission, attempt, settled);
    // After the settling, never before: an account that is free has no transaction on its way.
    await channels.release(attempt.sourceAccount, attempt.token, 'ledger' in settled ? settled.ledger : 0);
    if (isFirst) this.record(submission, attempt, settled);
  }

  private async judge(attempt: StoredAttempt, signal: AbortSignal): Promise<Verdict> {
    const ask = { signal, stickyKey: attempt.sourceAccount };
    const sighting = await this.look(attempt, ask);
    if (sighting.kind === 'landed') return { kind: 'settled', settled: settledBy(sighting) };
    const { reply, endpoint } = sighting;
    if (reply.latestLedgerCloseTime <= attempt.maxTime) {
      return { kind: 'pending', latestLedger: reply.latestLedger };
    }
    // A ledger has closed past maxTime and this node has not seen it. The account's own number, read from the same node
    // at the same ledger or later, tells whether it ever came in.
    const only = { only: endpoint, signal, minLedger: reply.latestLedger };
    const sequence = await this.sequenceOf(attempt.sourceAccount, only);
    if (sequence === null) return { kind: 'pending', latestLedger: reply.latestLedger };
    if (sequence < BigInt(attempt.sequence))
      return { kind: 'settled', settled: { kind: 'expired', hash: attempt.hash } };
    // The number is used up. Either this node forgot, or it follows another chain, or someone else used the account.
    const witnessed = await this.askWitnesses(attempt, endpoint, signal);
    if (witnessed !== null) return { kind: 'settled', settled: settledBy(witnessed) };
    const isRemembered = reply.oldestLedger <= attempt.signedAtLedger;
    return { kind: 'settled', settled: { kind: isRemembered ? 'expired' : 'lost', hash: attempt.hash } };
  }

  /** The account's number as one node has it; null when it knows no such account. */
  async sequenceOf(account: string, ask: Ask): Promise<bigint | null> {
    const { value } = await this.options.rpc.ledgerEntries([accountLedgerKey(account)], ask);
    const entry = value.entries?.[0];
    return entry === undefined ? null : readAccountEntry(entry.xdr).sequence;
  }

  /** By each of its hashes: a node may list a bumped transaction under the outer one alone. */
  async look(attempt: StoredAttempt, ask: Ask): Promise<Sighting> {
    let sighting = await this.lookFor(attempt.hash, ask);
    for (const { hash } of attempt.bumps) {
      if (sighting.kind === 'landed') return sighting;
      const next = await this.lookFor(hash, ask);
      // Of several answers the one that has seen least is what we know of all.
      if (next.kind === 'landed' || next.reply.latestLedger < sighting.reply.latestLedger) sighting = next;
    }
    return sighting;
  }

  private async lookFor(hash: TransactionHash, ask: Ask): Promise<Sighting> {
    const { value, endpoint } = await this.options.rpc.transaction(hash, ask);
    return value.status === 'NOT_FOUND'
      ? { kind: 'absent', reply: value, endpoint }
      : { kind: 'landed', hash, transaction: value };
  }

  private async askWitnesses(
    attempt: StoredAttempt,
    asked: Endpoint,
    signal: AbortSignal,
  ): Promise<Landed | null> {
    for (const only of this.options.rpc.pool.witnesses()) {
      if (only === asked) continue;
      try {
        const sighting = await this.look(attempt, { only, signal });
        if (sighting.kind === 'landed') return sighting;
      } catch (error) {
        if (!(error instanceof SorolaneError)) throw error;
        this.options.logger.warn(
          { err: error },
          'a node could not be asked about a transaction that another has forgotten',
        );
      }
    }
    return null;
  }

  private record(submission: StoredSubmission, attempt: StoredAttempt, settled: Settled): void {
    const { metrics, logger } = this.options;
    metrics.count('stellar_submissions_total', { outcome: settled.kind });
    metrics.observe('stellar_fee_bumps', attempt.bumps.length);
    if (settled.kind === 'success')
      metrics.observe('stellar_fee_charged_stroops', Number(settled.feeCharged));
    if ('ledger' in settled) {
      metrics.observe('stellar_send_to_ledger_ledgers', settled.ledger - attempt.signedAtLedger);
    }
    logger.info(
      { intent: submission._id, ...settled, sends: attempt.sends, bumps: attempt.bumps.length },
      'transaction settled',
    );
  }
}

function settledBy({ hash, transaction }: Landed): Settled {
  const result = readLanded(transaction);
  return result.kind === 'success'
    ? {
        kind: 'success',
        hash,
        ledger: transaction.ledger,
        returnValueXdr: result.returnValueXdr,
        feeCharged: result.feeStroops.toString(),
      }
    : { ...result, hash, ledger: transaction.ledger };
}
