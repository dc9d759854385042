import type { RetryPolicies } from './handler-registry';
import type { HealthThresholds } from './ingestion-health';

export interface IngestionTuning extends HealthThresholds {
  pollIntervalMs: number;
  /** Ceiling of the back-off while no server answers. */
  maxPollBackOffMs: number;
  processIntervalMs: number;
  /** Most events in one page. */
  pageLimit: number;
  /** Open events at which reading pauses. */
  maxPending: number;
  /** How long an event stays with a process that fell silent. */
  deliveryLeaseMs: number;
  /** How long the lead stays with a process that fell silent. */
  leaderLeaseMs: number;
  handlerTimeoutMs: number;
  /** Handler calls at one time in this process. */
  maxCalls: number;
  retry: RetryPolicies;
  maintenanceIntervalMs: number;
  retentionMs: number;
  compressAfterMs: number;
  minFreeDiskBytes: number;
  maxFileBytes?: number;
  stopGraceMs: number;
}

const HOUR_MS = 60 * 60 * 1000;

export const defaultTuning: IngestionTuning = {
  pollIntervalMs: 5_000,
  maxPollBackOffMs: 60_000,
  processIntervalMs: 1_000,
  pageLimit: 1_000,
  maxPending: 100_000,
  deliveryLeaseMs: 30_000,
  leaderLeaseMs: 15_000,
  handlerTimeoutMs: 60_000,
  maxCalls: 32,
  retry: {
    high: { maxAttempts: 10, baseDelayMs: 500, maxDelayMs: 60_000 },
    normal: { maxAttempts: 3, baseDelayMs: 1_000, maxDelayMs: 60_000 },
    low: { maxAttempts: 3, baseDelayMs: 5_000, maxDelayMs: 5 * 60_000 },
  },
  maintenanceIntervalMs: HOUR_MS,
  retentionMs: 24 * HOUR_MS,
  compressAfterMs: HOUR_MS,
  minFreeDiskBytes: 32 * 1024 * 1024,
  maxEventAgeMs: 60_000,
  maxLagLedgers: 20,
  stopGraceMs: 10_000,
};
