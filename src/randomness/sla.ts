import { isHighPriority, type PriorityLevel } from './priority';

export interface SlaVerdict {
  /** From the close of the ledger that held the request to its confirmation; retries don't restart it. */
  latencyMs: number;
  breached: boolean;
}

/** Only high-priority jobs are under the SLA. A clock that runs behind the network's counts as no time passed. */
export function judgeSla(
  job: { priorityLevel: PriorityLevel; requestedAt: Date },
  confirmedAtMs: number,
  highPrioritySlaMs: number,
): SlaVerdict {
  const latencyMs = Math.max(0, confirmedAtMs - job.requestedAt.getTime());
  return { latencyMs, breached: isHighPriority(job.priorityLevel) && latencyMs > highPrioritySlaMs };
}
