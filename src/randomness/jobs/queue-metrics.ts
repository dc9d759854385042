import { randomnessLifecycle, type JobState } from './randomness-lifecycle';

export interface QueueMetrics {
  queuedCount: number;
  generatingCount: number;
  submittingCount: number;
  confirmingCount: number;
  retryingCount: number;
  confirmedCount: number;
  failedCount: number;
  deadLetteredCount: number;
  /** Everything not yet terminal. */
  pendingCount: number;
  totalFailedCount: number;
}

export type JobCounts = Record<JobState, number>;

export function toQueueMetrics(counts: JobCounts): QueueMetrics {
  return {
    queuedCount: counts.queued,
    generatingCount: counts.generating,
    submittingCount: counts.submitting,
    confirmingCount: counts.confirming,
    retryingCount: counts.retrying,
    confirmedCount: counts.confirmed,
    failedCount: counts.failed,
    deadLetteredCount: counts['dead-lettered'],
    pendingCount: counts.queued + counts.generating + counts.submitting + counts.confirming + counts.retrying,
    totalFailedCount: counts.failed + counts['dead-lettered'],
  };
}

export const activeProcessing = (counts: JobCounts): number =>
  randomnessLifecycle.activeStates.reduce((sum, state) => sum + counts[state], 0);
