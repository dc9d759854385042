import { createHash } from 'node:crypto';
import { PermanentError, RejectedError, TransientError } from '../../platform/errors';
import { footprintKeys } from '../chain/transaction-codec';
import type { SimulatedCall, Simulator } from '../contract-reader';
import { decodeContractValue } from '../scval-codec';
import {
  NOTHING_PREPARED,
  type IntentId,
  type Prepared,
  type Sent,
  type SubmissionOutcome,
  type SubmissionRequest,
  type TransactionSubmitter,
} from '../submission';
import type { AttemptBuilder, Built } from './attempt-builder';
import type { AttemptDriver } from './attempt-driver';
import type { EnvelopeSender } from './envelope-sender';
import type { MaintenanceRunner } from './maintenance-runner';
import type { SubmissionRepository } from './submission-repository';
import type { Settled, StoredSubmission } from './submission.model';

export interface TransactionSubmitterOptions {
  simulator: Simulator;
  submissions: SubmissionRepository;
  builder: AttemptBuilder;
  sender: EnvelopeSender;
  driver: AttemptDriver;
  maintenance: MaintenanceRunner;
  /** Sees to it that the source accounts exist. */
  ensureChannels: (signal: AbortSignal) => Promise<void>;
}

/** A second lap follows a lost race or a restoration; more of them mean that something keeps undoing our work. */
const MAX_PREPARE_LAPS = 3;

/**
 * One transaction for one intent, through crashes at any point. What is stored of an intent decides what may be done:
 *
 *   nothing ── prepare ──> building ── commit ──> attempt ── chain decides ──> settled
 *                                                    │ send, resend, bump: the same inner transaction
 *
 * Only without an attempt is another one built, and only after the chain was asked whether the effect is there.
 */
export class MongoTransactionSubmitter implements TransactionSubmitter {
  constructor(private readonly options: TransactionSubmitterOptions) {}

  async prepare(request: SubmissionRequest, signal: AbortSignal): Promise<Prepared | SubmissionOutcome> {
    for (let lap = 1; lap <= MAX_PREPARE_LAPS; lap += 1) {
      const opened = await this.options.submissions.open(request.intent, request.epoch);
      if (opened.kind === 'superseded') return opened;
      const { submission } = opened;
      if (submission.attempt !== null) return { kind: 'prepared', hash: submission.attempt.hash };
      const stands = await this.standingOutcome(request, submission, signal);
      if (stands !== null) return stands;
      const evidence = await request.findEvidence(signal);
      if (evidence !== null) return { kind: 'already_done', evidence };

      const simulated = await this.simulate(request, signal);
      if ('kind' in simulated) return simulated;
      if (simulated.restoreFootprint !== undefined) {
        await this.restore(request, simulated.restoreFootprint, signal);
        continue;
      }
      const built = await this.build(request, simulated, submission.openedAt.getTime(), signal);
      if (built.kind === 'signed') return { kind: 'prepared', hash: built.hash };
    }
    throw new TransientError('SUBMISSION_CONTENDED', 'others keep coming between; nothing was signed');
  }

  async send(request: SubmissionRequest, signal: AbortSignal): Promise<Sent | SubmissionOutcome> {
    const { submissions, sender } = this.options;
    const noted = await submissions.openSend(request.intent, request.epoch);
    if (!noted?.attempt) {
      const opened = await submissions.open(request.intent, request.epoch);
      if (opened.kind === 'superseded') return opened;
      const { attempt, settled } = opened.submission;
      // One that came between is sent by whoever made it.
      return attempt === null
        ? this.endedOutcome(request, settled, signal)
        : { kind: 'sent', hash: attempt.hash };
    }
    const { attempt } = noted;
    const result = await sender.handOver(noted, attempt, signal);
    if (result.kind === 'settled') return this.outcomeOf(request, result.settled, signal);
    return { kind: 'sent', hash: attempt.hash };
  }

  async confirm(
    request: SubmissionRequest,
    options: { timeoutMs: number; signal: AbortSignal },
  ): Promise<SubmissionOutcome> {
    // Raises the epoch, so that a predecessor that still drives this intent stops.
    const opened = await this.options.submissions.open(request.intent, request.epoch);
    if (opened.kind === 'superseded') return opened;
    const driven = await this.options.driver.drive(request, { ...options, opened: opened.submission });
    switch (driven.kind) {
      case 'settled':
        return this.outcomeOf(request, driven.settled, options.signal);
      case 'nothing':
        throw nothingPrepared(request.intent);
      default:
        return driven;
    }
  }

  /** What an earlier attempt came to, where that forbids another one. */
  private async standingOutcome(
    request: SubmissionRequest,
    { settled, settledEpoch }: StoredSubmission,
    signal: AbortSignal,
  ): Promise<SubmissionOutcome | null> {
    if (settled === null) return null;
    if (settled.kind === 'success') return this.outcomeOf(request, settled, signal);
    // A refusal holds for the claim that met it. A later claim (a replay by an operator) gets a new try.
    const isRefusal =
      settled.kind === 'refused' || (settled.kind === 'failed' && settled.nature === 'contract');
    return isRefusal && (settledEpoch ?? 0) >= request.epoch
      ? this.outcomeOf(request, settled, signal)
      : null;
  }

  private endedOutcome(
    request: SubmissionRequest,
    settled: Settled | null,
    signal: AbortSignal,
  ): Promise<SubmissionOutcome> {
    if (settled === null) throw nothingPrepared(request.intent);
    return this.outcomeOf(request, settled, signal);
  }

  private async outcomeOf(
    request: SubmissionRequest,
    settled: Settled,
    signal: AbortSignal,
  ): Promise<SubmissionOutcome> {
    const { hash } = settled;
    switch (settled.kind) {
      case 'success':
        return {
          kind: 'success',
          hash,
          ledger: settled.ledger,
          returnValue: decodeContractValue(settled.returnValueXdr),
          feeChargedStroops: BigInt(settled.feeCharged),
        };
      case 'failed': {
        if (settled.nature === 'stale') return { kind: 'expired', hash };
        const { code, contractCode } = settled;
        return this.refusal(
          request,
          { code, hash, ...(contractCode !== undefined && { contractCode }) },
          signal,
        );
      }
      case 'refused':
        return this.refusal(request, { code: settled.code, hash }, signal);
      case 'expired':
        return { kind: 'expired', hash };
      case 'lost': {
        const evidence = await request.findEvidence(signal);
        // Its time is over on every node: with no effect to show for it there is nothing to wait for.
        return evidence === null ? { kind: 'expired', hash } : { kind: 'already_done', evidence };
      }
    }
  }

  /** An "already done" of the contract counts once the chain shows the effect. */
  private async refusal(
    request: SubmissionRequest,
    refused: { code: string; contractCode?: number; message?: string } & Pick<Partial<Settled>, 'hash'>,
    signal: AbortSignal,
  ): Promise<SubmissionOutcome> {
    const { contractCode } = refused;
    if (contractCode !== undefined && request.alreadyDoneCodes.includes(contractCode)) {
      const evidence = await request.findEvidence(signal);
      if (evidence !== null) return { kind: 'already_done', evidence };
    }
    const message =
      refused.message ??
      `${request.call.functionName} was refused on chain: ${contractCode === undefined ? refused.code : `contract error ${contractCode}`}`;
    return { kind: 'rejected', ...refused, message };
  }

  private async simulate(
    request: SubmissionRequest,
    signal: AbortSignal,
  ): Promise<SimulatedCall | SubmissionOutcome> {
    try {
      return await this.options.simulator.simulate(request.call, signal, request.minLedger);
    } catch (error) {
      if (!(error instanceof RejectedError)) throw error;
      const { code, message, details } = error;
      const contractCode = details['contractCode'];
      return this.refusal(
        request,
        { code, message, ...(typeof contractCode === 'number' && { contractCode }) },
        signal,
      );
    }
  }

  private async build(
    { intent, epoch, feeClass, call }: SubmissionRequest,
    { footprint, auth }: SimulatedCall,
    sinceMs: number,
    signal: AbortSignal,
  ): Promise<Built> {
    await this.options.ensureChannels(signal);
    const body = { kind: 'call', call, footprint, auth } as const;
    return this.options.builder.build({ intent, epoch, feeClass, body, sinceMs }, signal);
  }

  /** Whoever needs the same entries back shares one restoration. */
  private async restore({ call }: SubmissionRequest, footprint: string, signal: AbortSignal): Promise<void> {
    const { simulator, maintenance, ensureChannels } = this.options;
    await ensureChannels(signal);
    const keys = createHash('sha256').update(footprintKeys(footprint)).digest('hex');
    await maintenance.run(
      {
        intent: `restore:${keys}` as IntentId,
        body: { kind: 'restore', footprint },
        isWanted: async (minLedger) =>
          (await simulator.simulate(call, signal, minLedger)).restoreFootprint !== undefined,
      },
      signal,
    );
  }
}

const nothingPrepared = (intent: IntentId): PermanentError =>
  new PermanentError(NOTHING_PREPARED, `no transaction was prepared for ${intent}`);
