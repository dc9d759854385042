import type { StoredRandomnessJob } from './randomness-job.model';
import type { RaffleStatus } from './contracts/raffle-contract';

const STUCK_LAG_LEDGERS = 100;
const STUCK_AGE_MS = 300_000;
const HEALTHY_LAG_LEDGERS = 50;
const HEALTHY_AGE_MS = 120_000;

export type DrawStatus = 'stuck' | 'pending' | 'confirmed' | 'failed';

export interface DrawReport {
  raffleId: number | null;
  requestId: string;
  jobId: string;
  status: DrawStatus;
  ageMs: number;
  /** ISO 8601. */
  since: string;
  contractStatus: RaffleStatus | 'unknown';
  queueState: string;
  ledgerRange: { requestedAtLedger: number | null; currentLedger: number | null; lagLedgers: number | null };
  lastError: string | null;
  nextStep: string;
  signals: string[];
}

/** What an operator is to make of a job: how late it is, what says so, and what to do. */
export function reportDraw(
  job: StoredRandomnessJob,
  {
    nowMs,
    currentLedger,
    contractStatus,
  }: { nowMs: number; currentLedger: number | null; contractStatus: DrawReport['contractStatus'] },
): DrawReport {
  const ageMs = Math.max(0, nowMs - job.requestedAt.getTime());
  const lagLedgers =
    currentLedger === null || job.requestedAtLedger === null
      ? null
      : Math.max(0, currentLedger - job.requestedAtLedger);
  const { status, signals } = judge(job, ageMs, lagLedgers);
  return {
    raffleId: job.raffleId,
    requestId: job.requestId,
    jobId: job._id.toHexString(),
    status,
    ageMs,
    since: job.requestedAt.toISOString(),
    contractStatus,
    queueState: `${job.currentState} (${job.phase})`,
    ledgerRange: { requestedAtLedger: job.requestedAtLedger, currentLedger, lagLedgers },
    lastError: job.lastError,
    nextStep: nextStep(job, status, contractStatus),
    signals,
  };
}

function judge(
  job: StoredRandomnessJob,
  ageMs: number,
  lagLedgers: number | null,
): { status: DrawStatus; signals: string[] } {
  if (job.currentState === 'confirmed') return { status: 'confirmed', signals: [] };
  if (job.phase === 'done' || job.phase === 'dead')
    return { status: 'failed', signals: [`queue phase ${job.phase}`] };
  const signals: string[] = [];
  if (lagLedgers !== null && lagLedgers > HEALTHY_LAG_LEDGERS)
    signals.push(`${lagLedgers} ledgers behind its request`);
  if (ageMs > HEALTHY_AGE_MS) signals.push(`${Math.round(ageMs / 1000)} s old`);
  const stuck = (lagLedgers !== null && lagLedgers >= STUCK_LAG_LEDGERS) || ageMs >= STUCK_AGE_MS;
  return { status: stuck ? 'stuck' : 'pending', signals };
}

function nextStep(
  job: StoredRandomnessJob,
  status: DrawStatus,
  contractStatus: DrawReport['contractStatus'],
): string {
  if (status === 'confirmed') return 'none';
  if (contractStatus === 'finalized' || contractStatus === 'cancelled')
    return `none: the raffle is ${contractStatus}`;
  if (job.phase === 'dead') return `re-enqueue ${job.requestId} once the cause is mended`;
  if (job.phase === 'leased') return 'wait: a worker holds it';
  return status === 'stuck'
    ? 'check that workers run and the RPC answers; else force-submit'
    : 'wait: it is in the queue';
}
