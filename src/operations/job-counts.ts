import type { JobCounts, QueueMetrics } from '../randomness/jobs/queue-metrics';
import type { RandomnessPipeline } from '../randomness/randomness.pipeline';
import type { VerificationPipeline } from '../verification/verification.pipeline';

/** How many jobs a pipeline has in each state, each job once. */
export async function countJobsByState(
  pipeline: RandomnessPipeline | VerificationPipeline,
): Promise<Readonly<Record<string, number>>> {
  return pipeline.name === 'randomness' ? withoutSums(await pipeline.stats()) : pipeline.stats();
}

/** The queue's own figures also hold sums, which would count jobs twice. */
const withoutSums = (metrics: QueueMetrics): JobCounts => ({
  queued: metrics.queuedCount,
  generating: metrics.generatingCount,
  submitting: metrics.submittingCount,
  confirming: metrics.confirmingCount,
  retrying: metrics.retryingCount,
  confirmed: metrics.confirmedCount,
  failed: metrics.failedCount,
  'dead-lettered': metrics.deadLetteredCount,
});
