import type { AuditRow } from '../audit/audit-chain';
import type { StoredRandomnessJob } from '../jobs/randomness-job.model';
import type { StateTransition } from '../jobs/randomness-lifecycle';

export interface JobListItem {
  requestId: string;
  raffleId: number | null;
  currentState: string;
  attemptCount: number;
  /** ISO 8601, as all times. */
  createdAt: string;
  updatedAt: string;
  /** Of a job that is not confirmed. */
  lastError: string | null;
  txHash: string | null;
  ledger: number | null;
  transitionCount: number;
}

export interface TransitionView {
  from: string;
  to: string;
  timestamp: string;
  reason: string | null;
  attemptNumber: number | null;
}

export interface DeadLetterItem extends Pick<
  JobListItem,
  'requestId' | 'raffleId' | 'attemptCount' | 'createdAt' | 'updatedAt' | 'lastError'
> {
  transitions: TransitionView[];
}

export interface RequestView extends JobListItem {
  contractId: string;
  priority: number;
  prizeAmount: number | null;
  requestedAt: string;
  slaBreached: boolean;
  transitions: TransitionView[];
  /** Once it is on chain. Before that, whoever knew the seed would know the winner. */
  randomness: {
    method: string;
    messageVersion: number;
    seed: string;
    proof: string;
    publicKey: string;
  } | null;
}

export function jobListItem(job: StoredRandomnessJob): JobListItem {
  const { requestId, raffleId, currentState, attemptCount, lastError, txHash, ledger } = job;
  return {
    requestId,
    raffleId,
    currentState,
    attemptCount,
    createdAt: job.enqueuedAt.toISOString(),
    updatedAt: later(job.enqueuedAt, job.updatedAt).toISOString(),
    // What went wrong on the way is history once it is on chain; the transitions tell it.
    lastError: currentState === 'confirmed' ? null : lastError,
    txHash,
    ledger,
    transitionCount: job.transitions.length,
  };
}

/** The one is the database's clock, the other the process's: of a job that is new, the second may be behind. */
const later = (one: Date, other: Date): Date => (one > other ? one : other);

export function deadLetterItem(job: StoredRandomnessJob): DeadLetterItem {
  const { requestId, raffleId, attemptCount, createdAt, updatedAt, lastError } = jobListItem(job);
  return {
    requestId,
    raffleId,
    attemptCount,
    createdAt,
    updatedAt,
    lastError,
    transitions: job.transitions.map(transitionView),
  };
}

export function requestView(job: StoredRandomnessJob): RequestView {
  const delivered = job.currentState === 'confirmed' ? job.randomness : null;
  return {
    ...jobListItem(job),
    contractId: job.contractId,
    priority: job.priorityLevel,
    prizeAmount: job.prizeXlm,
    requestedAt: job.requestedAt.toISOString(),
    slaBreached: job.slaBreached,
    transitions: job.transitions.map(transitionView),
    randomness:
      delivered === null
        ? null
        : {
            method: delivered.method,
            messageVersion: delivered.messageVersion,
            seed: delivered.seed,
            proof: delivered.proof,
            publicKey: delivered.oracleKey,
          },
  };
}

/** An audit row; `redacted` where it is not as it was hashed, so that its hash does not fit what is shown. */
export type AuditRowView = AuditRow & { redacted?: true };

const ONLY_WITH_KEY = '(shown with an API key)';

/** Who stepped in, and why, is for those who may step in themselves. */
export function auditRowView(row: AuditRow, isTrusted: boolean): AuditRowView {
  const { operator, reason } = row.data;
  if (isTrusted || operator === undefined) return row;
  return {
    ...row,
    data: {
      ...row.data,
      operator: ONLY_WITH_KEY,
      ...(reason === undefined ? {} : { reason: ONLY_WITH_KEY }),
    },
    redacted: true,
  };
}

const transitionView = ({
  fromState,
  toState,
  timestamp,
  reason,
  attemptNumber,
}: StateTransition): TransitionView => ({
  from: fromState,
  to: toState,
  timestamp: timestamp.toISOString(),
  reason: reason ?? null,
  attemptNumber: attemptNumber ?? null,
});
