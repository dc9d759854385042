import { type Response, Router } from 'express';
import type { Clock } from '../../platform/clock';
import { shown } from '../../platform/input-wording';
import { refuseOtherMethods } from '../../platform/other-methods';
import { HttpProblem, parseInput, takesNoQuery } from '../../platform/problem';
import type { JobStateManager } from '../jobs/job-state-manager';
import type { MetricsCache } from '../jobs/metrics-cache';
import { type QueueHealth, queueHealthStatus } from './queue-health-status';
import { activeProcessing, toQueueMetrics } from '../jobs/queue-metrics';
import { isJobState, jobStates, type JobState } from '../jobs/randomness-lifecycle';
import { jobsQuerySchema } from './randomness.schemas';
import { deadLetterItem, jobListItem } from './views';

/** What operators see of the settings. */
export interface QueueConfig {
  maxRetries: number;
  initialBackoffMs: number;
  backoffMultiplier: number;
  maxBackoffMs: number;
  confirmationTimeoutMs: number;
  maxConcurrency: number;
  generationTimeoutMs: number;
  submissionTimeoutMs: number;
}

export interface QueueHealthRoutesDeps {
  states: JobStateManager;
  metricsCache: MetricsCache;
  config: QueueConfig;
  clock: Clock;
}

/**
 * To be mounted at /api/v1/queue and at /queue. Bodies are as specified, bare. Lists come in pages: `limit` and `after`,
 * the next page in the `Link` header.
 *
 * Counts, `activeProcessing` among them, are of the whole queue: of all processes on the database. `maxConcurrency` and the
 * rest of the configuration are of the process that answers. With several workers, `activeProcessing` may well be the
 * larger one.
 */
export function queueHealthRoutes({ states, metricsCache, config, clock }: QueueHealthRoutesDeps): Router {
  const router = Router();

  router.get('/metrics', takesNoQuery, async (_request, response) => {
    response.json(await states.getMetrics());
  });

  // Takes any query: what probes it may add one against caches, and must not be told that the queue is ill for it.
  router.get('/health', async (_request, response) => {
    const counts = await metricsCache.counts();
    const metrics = toQueueMetrics(counts);
    const health: QueueHealth = {
      status: queueHealthStatus(metrics),
      pendingCount: metrics.pendingCount,
      failedCount: metrics.failedCount,
      deadLetteredCount: metrics.deadLetteredCount,
      activeProcessing: activeProcessing(counts),
      maxConcurrency: config.maxConcurrency,
      timestamp: new Date(clock.now()).toISOString(),
    };
    response.json(health);
  });

  router.get('/jobs/:state', async (request, response) => {
    const state = stateOf(request.params.state);
    const { limit, after } = await parseInput(jobsQuerySchema, request.query);
    const { jobs, next } = await states.getJobsByState(state, {
      limit,
      ...(after === undefined ? {} : { after }),
    });
    linkNext(response, `${request.baseUrl}${request.path}`, limit, next);
    response.json(jobs.map(jobListItem));
  });

  router.get('/dead-letter', async (request, response) => {
    const { limit, after } = await parseInput(jobsQuerySchema, request.query);
    const { jobs, next } = await states.getJobsByState('dead-lettered', {
      limit,
      ...(after === undefined ? {} : { after }),
    });
    linkNext(response, `${request.baseUrl}${request.path}`, limit, next);
    response.json(jobs.map(deadLetterItem));
  });

  router.get('/config', takesNoQuery, async (_request, response) => {
    response.json({ ...config, activeProcessing: activeProcessing(await metricsCache.counts()) });
  });

  return refuseOtherMethods(router);
}

function stateOf(text: string): JobState {
  if (isJobState(text)) return text;
  const problem = `expected one of ${jobStates.join(', ')}, not ${shown(text)}`;
  throw new HttpProblem(400, 'UNKNOWN_STATE', `state: ${problem}`, [{ field: 'state', problem }]);
}

function linkNext(response: Response, path: string, limit: number, next: string | null): void {
  if (next === null) return;
  response.setHeader('Link', `<${path}?limit=${limit}&after=${next}>; rel="next"`);
}
