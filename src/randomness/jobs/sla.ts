import type { Logger } from '../../platform/logger';
import type { Metrics } from '../../platform/metrics';
import { isHighPriority, type PriorityLevel } from './priority';

export interface SlaVerdict {
  /** From the close of the ledger that held the request to the job's end; retries don't restart it. */
  latencyMs: number;
  breached: boolean;
}

/** Only high-priority jobs are under the SLA. A clock that runs behind the network's counts as no time passed. */
export function judgeSla(
  job: { priorityLevel: PriorityLevel; requestedAt: Date },
  endedAtMs: number,
  highPrioritySlaMs: number,
): SlaVerdict {
  const latencyMs = Math.max(0, endedAtMs - job.requestedAt.getTime());
  return { latencyMs, breached: isHighPriority(job.priorityLevel) && latencyMs > highPrioritySlaMs };
}

interface Subject {
  requestId: string;
  priorityLevel: PriorityLevel;
  /** Told of in an earlier life of the job. */
  slaBreached: boolean;
}

interface Listeners {
  logger: Logger;
  metrics: Metrics;
}

export function tellLatency({ metrics }: Listeners, job: Subject, { latencyMs }: SlaVerdict): void {
  metrics.observe('randomness_delivery_latency_ms', latencyMs, { priority: String(job.priorityLevel) });
}

/** Counts and logs a breach, once for a job: a late delivery, or none at all. */
export function tellBreach(
  { logger, metrics }: Listeners,
  { requestId, priorityLevel, slaBreached }: Subject,
  { latencyMs, breached }: SlaVerdict,
): void {
  if (!breached || slaBreached) return;
  metrics.count('randomness_sla_breaches_total', { priority: String(priorityLevel) });
  logger.warn({ requestId, latencyMs }, `Job ${requestId} breached the SLA of high-priority raffles`);
}
