import type { QueueMetrics } from '../jobs/queue-metrics';

export type QueueHealthStatus = 'healthy' | 'degraded' | 'unhealthy';

export interface QueueHealth {
  status: QueueHealthStatus;
  pendingCount: number;
  failedCount: number;
  deadLetteredCount: number;
  activeProcessing: number;
  maxConcurrency: number;
  /** ISO 8601. */
  timestamp: string;
}

const MAX_HEALTHY_FAILED = 5;
const MAX_HEALTHY_PENDING = 50;

export function queueHealthStatus(metrics: QueueMetrics): QueueHealthStatus {
  if (metrics.deadLetteredCount > 0) return 'unhealthy';
  const strained = metrics.failedCount > MAX_HEALTHY_FAILED || metrics.pendingCount > MAX_HEALTHY_PENDING;
  return strained ? 'degraded' : 'healthy';
}
