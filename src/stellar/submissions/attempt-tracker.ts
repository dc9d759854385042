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

/**
 * What one node knows of an attempt that another has not seen:
 * - silent: nothing; it can't be asked, has been stuck for long, or doesn't know the account
 * - behind: no ledger has closed past maxTime there
 * - unused: one has, and the account's number is still unused: it never lands
 * - used_by_another: the number is used up, and every ledger since the signing was looked through
 * - forgotten: the number is used up, by what the node no longer knows
 */
type Testimony = Landed | { kind: 'silent' | 'behind' | 'unused' | 'used_by_another' | 'forgotten' };

/** A node that stays at one ledger for so long is not waited for. */
const STUCK_AFTER_MS = 120_000;

/** Finds out on chain what became of an attempt, and writes it down. */
export class AttemptTracker {
  constructor(private readonly options: AttemptTrackerOptions) {}

  /** Looks once; settles the attempt and frees its account when it is decided. */
  async follow(submission: StoredSubmission, attempt: StoredAttempt, signal: AbortSignal): Promise<Verdict> {
    const verdict = await this.judge(attempt, signal);
    if (verdict.kind === 'settled') await this.settle(submission, attempt, verdict.settled);
    return verdict;
  }

  /** Follows those whose account shows, at one question for all, that its number is used up. */
  async followUsedUp(submissions: readonly StoredSubmission[], signal: AbortSignal): Promise<void> {
    const attempts = submissions.flatMap((submission) =>
      submission.attempt === null ? [] : [{ submission, attempt: submission.attempt }],
    );
    const keys = attempts.map(({ attempt }) => accountLedgerKey(attempt.sourceAccount));
    const { value } = await this.options.rpc.ledgerEntries(keys, { signal });
    const accounts = (value.entries ?? []).map((entry) => readAccountEntry(entry.xdr));
    const sequences = new Map(accounts.map(({ address, sequence }) => [address, sequence]));
    for (const { submission, attempt } of attempts) {
      const sequence = sequences.get(attempt.sourceAccount) ?? 0n;
      if (sequence >= BigInt(attempt.sequence)) await this.follow(submission, attempt, signal);
    }
  }

  private async settle(
    submission: StoredSubmission,
    attempt: StoredAttempt,
    settled: Settled,
  ): Promise<void> {
    const settling = this.options.submissions.settle(submission, attempt, settled);
    // What a ledger holds is over, in whichever order that is written down. Otherwise the settling comes first, so that an
    // account that is free has no transaction on its way.
    if (!('ledger' in settled)) await settling;
    const [isFirst] = await Promise.all([settling, this.free(attempt, settled)]);
    if (isFirst) this.record(submission, attempt, settled);
  }

  /** For what a node refused at the only send. False when there was another one meanwhile: nothing is decided then. */
  async settleUnsent(
    submission: StoredSubmission,
    attempt: StoredAttempt,
    settled: Settled,
  ): Promise<boolean> {
    const isDecided = await this.options.submissions.settleUnsent(submission, attempt, settled);
    if (!isDecided) return false;
    await this.free(attempt, settled);
    this.record(submission, attempt, settled);
    return true;
  }

  private async free({ sourceAccount, token, sequence }: StoredAttempt, settled: Settled): Promise<void> {
    const lastUse =
      'ledger' in settled ? { ledger: settled.ledger, sequence } : { ledger: 0, sequence: null };
    await this.options.channels.release(sourceAccount, token, lastUse);
  }

  private async judge(attempt: StoredAttempt, signal: AbortSignal): Promise<Verdict> {
    const sighting = await this.look(attempt, { signal, stickyKey: attempt.sourceAccount });
    if (sighting.kind === 'landed') return { kind: 'settled', settled: settledBy(sighting) };
    const { latestLedger, latestLedgerCloseTime } = sighting.reply;
    if (latestLedgerCloseTime <= attempt.maxTime) return { kind: 'pending', latestLedger };
    // That it never lands is not for one node to say: it may count time wrong, or follow another chain.
    const testimonies = await this.hearWitnesses(attempt, signal);
    const landed = testimonies.find((one) => one.kind === 'landed');
    if (landed !== undefined) return { kind: 'settled', settled: settledBy(landed) };
    const end = endBy(testimonies.map((one) => one.kind));
    return end === null
      ? { kind: 'pending', latestLedger }
      : { kind: 'settled', settled: { kind: end, hash: attempt.hash } };
  }

  /** The account's number as one node has it, and the ledger that it read it at; null when it knows no such account. */
  async accountOf(account: string, ask: Ask): Promise<{ sequence: bigint; ledger: number } | null> {
    const { value } = await this.options.rpc.ledgerEntries([accountLedgerKey(account)], ask);
    const entries = (value.entries ?? []).map((entry) => readAccountEntry(entry.xdr));
    const entry = entries.find(({ address }) => address === account);
    return entry === undefined ? null : { sequence: entry.sequence, ledger: value.latestLedger };
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

  private async hearWitnesses(attempt: StoredAttempt, signal: AbortSignal): Promise<Testimony[]> {
    const testimonies: Testimony[] = [];
    for (const witness of this.options.rpc.pool.witnesses()) {
      const testimony = await this.hear(attempt, witness, signal);
      testimonies.push(testimony);
      if (testimony.kind === 'landed') break;
    }
    return testimonies;
  }

  /** All questions to the one node, so that its answers are of one chain. */
  private async hear(attempt: StoredAttempt, only: Endpoint, signal: AbortSignal): Promise<Testimony> {
    const { rpc, logger } = this.options;
    // A node that is out of use would cost its whole deadline, several times over.
    if (!only.isClosed && rpc.pool.witnesses().some((one) => one.isClosed)) return { kind: 'silent' };
    try {
      const sighting = await this.look(attempt, { only, signal });
      if (sighting.kind === 'landed') return sighting;
      const { latestLedger: minLedger, latestLedgerCloseTime, oldestLedger } = sighting.reply;
      if (latestLedgerCloseTime <= attempt.maxTime) {
        return { kind: only.standstillMs > STUCK_AFTER_MS ? 'silent' : 'behind' };
      }
      // Read at the same ledger or later, the account's own number tells whether anything of that number came in.
      const account = await this.accountOf(attempt.sourceAccount, { only, signal, minLedger });
      if (account === null) return { kind: 'silent' };
      if (account.sequence < BigInt(attempt.sequence)) return { kind: 'unused' };
      return { kind: oldestLedger <= attempt.signedAtLedger ? 'used_by_another' : 'forgotten' };
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof SorolaneError)) throw error;
      logger.warn({ err: error }, 'a node could not be asked about a transaction that another has not seen');
      return { kind: 'silent' };
    }
  }

  private record(submission: StoredSubmission, attempt: StoredAttempt, settled: Settled): void {
    const { metrics, logger } = this.options;
    metrics.count('stellar_submissions_total', { outcome: settled.kind });
    metrics.observe('stellar_transaction_fee_bumps', attempt.bumps.length, {});
    if (settled.kind === 'success')
      metrics.observe('stellar_fee_charged_stroops', Number(settled.feeCharged), {});
    if ('ledger' in settled) {
      metrics.observe('stellar_inclusion_ledgers', settled.ledger - attempt.signedAtLedger, {});
    }
    logger.info(
      { intent: submission._id, ...settled, sends: attempt.sends, bumps: attempt.bumps.length },
      'transaction settled',
    );
  }
}

/** Null while it may still land. Nodes that contradict each other leave it to the effect on chain to tell what happened. */
function endBy(kinds: readonly Testimony['kind'][]): 'expired' | 'lost' | null {
  if (kinds.includes('behind')) return null;
  const denials = new Set(kinds.filter((kind) => kind !== 'silent'));
  if (denials.size === 0) return null;
  if (denials.size > 1 || denials.has('forgotten')) return 'lost';
  // The number is used up by something; a node that can't be asked might know it to be ours.
  if (denials.has('used_by_another') && kinds.includes('silent')) return 'lost';
  return 'expired';
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
