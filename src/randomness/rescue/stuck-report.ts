import type { RaffleStatus } from '../contracts/raffle-contract';
import type { StoredRandomnessJob } from '../jobs/randomness-job.model';
import { overStatus, type RaffleLook, statusOf } from './raffle-look';

const STUCK_LAG_LEDGERS = 100;
const STUCK_AGE_MS = 300_000;
const HEALTHY_LAG_LEDGERS = 50;
const HEALTHY_AGE_MS = 120_000;

/**
 * - stuck: the raffle waits (or may), and it is late or its job is dead
 * - pending: in time
 * - confirmed: the raffle holds our seed, whatever the queue knows of it yet
 * - failed: the raffle is over without it
 */
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

export interface DrawFacts {
  nowMs: number;
  currentLedger: number | null;
  look: RaffleLook;
  /** The raffle holds the seed that this job made. */
  holdsOurs: boolean;
  /** Ledgers after its request from which nothing is sent any more; 0 for no limit. */
  requestTimeoutLedgers: number;
}

/** What an operator is to make of a draw that is not known to be over: how late it is, what says so, and what to do. */
export function reportDraw(job: StoredRandomnessJob, facts: DrawFacts): DrawReport {
  const { nowMs, currentLedger, look, requestTimeoutLedgers } = facts;
  const { requestedAtLedger } = job;
  const ageMs = Math.max(0, nowMs - job.requestedAt.getTime());
  const lagLedgers =
    currentLedger === null || requestedAtLedger === null
      ? null
      : Math.max(0, currentLedger - requestedAtLedger);
  const status = statusOfDraw(job, facts, { ageMs, lagLedgers });
  const isTooLate = requestTimeoutLedgers > 0 && (lagLedgers ?? 0) >= requestTimeoutLedgers;
  return {
    raffleId: job.raffleId,
    requestId: job.requestId,
    jobId: job._id.toHexString(),
    status,
    ageMs,
    since: job.requestedAt.toISOString(),
    contractStatus: statusOf(look),
    queueState: `${job.currentState} (${job.phase})`,
    ledgerRange: { requestedAtLedger, currentLedger, lagLedgers },
    lastError: job.lastError,
    nextStep: nextStep(job, status, { isTooLate, look }),
    signals: signalsOf(job, look, { ageMs, lagLedgers }),
  };
}

interface Lateness {
  ageMs: number;
  lagLedgers: number | null;
}

function statusOfDraw(
  job: StoredRandomnessJob,
  { look, holdsOurs }: DrawFacts,
  { ageMs, lagLedgers }: Lateness,
): DrawStatus {
  if (holdsOurs) return 'confirmed';
  if (overStatus(look) !== null) return 'failed';
  // Asked for by hand while tickets are for sale: it waits for the draw, however long the sale lasts.
  if (statusOf(look) === 'open' && job.phase !== 'dead') return 'pending';
  const isLate = ageMs >= STUCK_AGE_MS || (lagLedgers ?? 0) >= STUCK_LAG_LEDGERS;
  return isLate || job.phase === 'dead' ? 'stuck' : 'pending';
}

function signalsOf(job: StoredRandomnessJob, look: RaffleLook, { ageMs, lagLedgers }: Lateness): string[] {
  const signals: string[] = [];
  if (lagLedgers !== null && lagLedgers > HEALTHY_LAG_LEDGERS)
    signals.push(`${lagLedgers} ledgers behind its request`);
  if (ageMs > HEALTHY_AGE_MS) signals.push(`${Math.round(ageMs / 1000)} s old`);
  if (job.phase === 'dead') signals.push(`dead letter: ${job.errors.at(-1)?.code ?? 'UNKNOWN'}`);
  if (look.kind !== 'seen') signals.push(`the raffle could not be read: ${look.problem}`);
  return signals;
}

function nextStep(
  job: StoredRandomnessJob,
  status: DrawStatus,
  { isTooLate, look }: { isTooLate: boolean; look: RaffleLook },
): string {
  const { phase, requestId } = job;
  if (phase === 'dead' && job.deadLetterPending) return 'wait: a worker is finding out how it ended';
  if (status === 'confirmed' || status === 'failed') {
    return phase === 'dead' ? `discard ${requestId}` : 'none: a worker will close it';
  }
  // Another try would find as little as the last one.
  if (phase === 'dead' && look.kind === 'absent')
    return `discard ${requestId}: its contract knows no such raffle`;
  if (phase === 'dead' && isTooLate) return `have the raffle fall back, then discard ${requestId}`;
  if (phase === 'dead') return `mend the cause, then re-enqueue ${requestId}`;
  if (phase === 'leased') return 'wait: a worker holds it';
  if (isTooLate) return 'have the raffle fall back: nothing is sent any more';
  return status === 'stuck'
    ? 'see that workers run and the RPC answers, or force-submit'
    : 'wait: it is queued';
}
