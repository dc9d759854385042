import type { RaffleStatus } from '../contracts/raffle-contract';
import type { StoredRandomnessJob } from '../jobs/randomness-job.model';
import { type RaffleLook, statusOf } from './raffle-look';

/** The job that something would be done to. */
export interface JobPlan {
  requestId: string;
  raffleId: number | null;
  jobId: string;
  state: string;
  phase: string;
  /** Tries that were begun, as the lists count them: a give-up by hand is none. */
  attemptCount: number;
  contractId: string;
  contractStatus: RaffleStatus | 'unknown';
  txHash: string | null;
  lastError: string | null;
  /** ISO 8601. */
  updatedAt: string;
  /** Why it would not be done. */
  refusal: string | null;
}

export function jobPlan(job: StoredRandomnessJob, look: RaffleLook, refusal: string | null): JobPlan {
  const { requestId, raffleId, currentState, phase, attemptCount, contractId, txHash, lastError } = job;
  return {
    requestId,
    raffleId,
    jobId: job._id.toHexString(),
    state: currentState,
    phase,
    attemptCount,
    contractId,
    contractStatus: statusOf(look),
    txHash,
    lastError,
    updatedAt: job.updatedAt.toISOString(),
    refusal,
  };
}
