import type { z } from 'zod';
import type { ingestionSettings } from '../platform/settings/ingestion.settings';
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

export type IngestionSettings = Readonly<z.infer<z.ZodObject<typeof ingestionSettings>>>;

/** The settings' part of the tuning. */
export function tuningFrom(settings: IngestionSettings): IngestionTuning {
  const maxFileBytes = settings.EVENT_QUEUE_MAX_FILE_BYTES;
  return {
    ...defaultTuning,
    pollIntervalMs: settings.EVENT_INGESTION_POLL_INTERVAL_MS,
    processIntervalMs: settings.EVENT_INGESTION_PROCESS_INTERVAL_MS,
    pageLimit: settings.EVENT_INGESTION_LIMIT,
    maxPending: settings.EVENT_QUEUE_MAX_PENDING,
    deliveryLeaseMs: settings.EVENT_QUEUE_LEASE_MS,
    leaderLeaseMs: settings.EVENT_INGESTION_LEASE_MS,
    handlerTimeoutMs: settings.EVENT_HANDLER_TIMEOUT_MS,
    maxCalls: settings.EVENT_HANDLER_MAX_CALLS,
    retry: {
      ...defaultTuning.retry,
      normal: { ...defaultTuning.retry.normal, maxAttempts: settings.EVENT_QUEUE_MAX_RETRIES },
    },
    maintenanceIntervalMs: settings.EVENT_QUEUE_CLEANUP_INTERVAL_MS,
    retentionMs: settings.EVENT_QUEUE_RETENTION_MS,
    compressAfterMs: settings.EVENT_QUEUE_COMPRESS_AFTER_MS,
    minFreeDiskBytes: settings.EVENT_QUEUE_MIN_FREE_DISK_BYTES,
    maxEventAgeMs: settings.EVENT_QUEUE_MAX_AGE_MS,
    maxLagLedgers: settings.EVENT_MAX_LAG_LEDGERS,
    ...(maxFileBytes === 0 ? {} : { maxFileBytes }),
  };
}
