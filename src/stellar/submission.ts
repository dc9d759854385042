import type { Branded } from '../platform/ids';
import type { ContractCall, ContractValue } from './contract-value';

/** Names one wanted effect on chain (`mint:<request>`). However often it is asked for, at most one transaction of it lands. */
export type IntentId = Branded<'IntentId'>;

/** Hash of a transaction, 64 hex digits. */
export type TransactionHash = Branded<'TransactionHash'>;

/** What the chain itself says of an effect that is already there. */
export interface Evidence {
  /** True when the effect is the one we wanted; false when someone else's stands in its place. */
  ours: boolean;
  returnValue?: ContractValue;
  transactionHash?: TransactionHash;
  ledger?: number;
  /** For the log. */
  summary: string;
}

export type FeeClass = 'standard' | 'urgent';

export interface SubmissionRequest {
  intent: IntentId;
  /** The claim's epoch: a holder with an older one is refused, so that a zombie can't sign a second transaction. */
  epoch: number;
  call: ContractCall;
  /** Ledger that a node must have before its word about the call counts; what the call rests on happened in it. */
  minLedger?: number;
  feeClass: FeeClass;
  /** Contract error codes that mean "already done"; they count only when `findEvidence` agrees. */
  alreadyDoneCodes: readonly number[];
  /** Asks the chain whether the effect is there. Called before each (re)build, and on an "already done" code. */
  findEvidence(signal: AbortSignal): Promise<Evidence | null>;
}

/** Code of the PermanentError with which `send` and `confirm` answer for an intent that nothing is stored of. */
export const NOTHING_PREPARED = 'NOTHING_PREPARED';

/** Code of the RejectedError with which a call ends where there is no contract of that id, or of one that it calls. */
export const NO_SUCH_CONTRACT = 'NO_SUCH_CONTRACT';

/** Final, but for `unknown`, after which the same intent has to be confirmed again later. */
export type SubmissionOutcome =
  | {
      kind: 'success';
      hash: TransactionHash;
      ledger: number;
      returnValue: ContractValue;
      feeChargedStroops: bigint;
    }
  | { kind: 'already_done'; evidence: Evidence }
  /** The network or the contract refused for good. `contractCode` where the contract gave one. */
  | { kind: 'rejected'; code: string; message: string; contractCode?: number; hash?: TransactionHash }
  /** Never to land any more, and its effect is not on chain; the next `prepare` builds a new one. */
  | { kind: 'expired'; hash: TransactionHash }
  | { kind: 'unknown'; hash: TransactionHash }
  /** A later epoch works on this intent. */
  | { kind: 'superseded' };

/** Signed bytes are stored; nothing was necessarily sent. */
export type Prepared = { kind: 'prepared'; hash: TransactionHash };
export type Sent = { kind: 'sent'; hash: TransactionHash };

/**
 * Protocol: prepare → (caller stores the hash) → send → confirm. Each step may be repeated after a crash at any point;
 * `prepare` returns what is on its way rather than building a second transaction.
 * Rejects with a TransientError when the network can't be asked; nothing is lost by that.
 */
export interface TransactionSubmitter {
  /** Builds, simulates, signs and stores, unless an attempt of this intent is still undecided. */
  prepare(request: SubmissionRequest, signal: AbortSignal): Promise<Prepared | SubmissionOutcome>;
  /** Sends the stored bytes. Any doubt about the answer counts as sent. */
  send(request: SubmissionRequest, signal: AbortSignal): Promise<Sent | SubmissionOutcome>;
  /** Polls by hash, sends the same bytes again and bumps the fee where needed, until final or until `timeoutMs` have passed. */
  confirm(
    request: SubmissionRequest,
    options: { timeoutMs: number; signal: AbortSignal },
  ): Promise<SubmissionOutcome>;
}

/** Reads contract state by simulation; sends nothing. */
export interface ContractReader {
  /**
   * @param minLedger a node behind it isn't asked, or is asked again later
   * @throws RejectedError with `details.contractCode` when the contract refuses, TransientError when the network can't be asked.
   */
  read(call: ContractCall, signal: AbortSignal, minLedger?: number): Promise<ContractValue>;
}

/** What a call would cost now, beside what a fee bump may add. */
export interface FeeEstimate {
  /** The bid for a place in a ledger. */
  inclusionStroops: bigint;
  /** For what the call reads, writes and computes. */
  resourceStroops: bigint;
}

export interface FeeEstimator {
  /** @throws RejectedError when the contract refuses the call, TransientError when the network can't be asked. */
  estimate(call: ContractCall, feeClass: FeeClass, signal: AbortSignal): Promise<FeeEstimate>;
}

/** For decisions that one node must not be able to bring about. */
export interface RefusalWitnesses {
  /**
   * What each node says of the call by simulation: the contract's error code, or null where it would succeed, fails for
   * another reason, or the node can't be asked. One entry for each node, at least one.
   */
  refusalsOf(
    call: ContractCall,
    signal: AbortSignal,
    minLedger?: number,
  ): Promise<readonly (number | null)[]>;
}
