import { Router } from 'express';
import { checkReadiness, type ReadinessCheck } from '../operations/readiness';
import type { WorkerHealthService } from '../operations/worker-health.service';
import { refuseOtherMethods } from '../platform/other-methods';

export interface HealthSources {
  workers: WorkerHealthService;
  readiness: readonly ReadinessCheck[];
}

/**
 * - GET /live: this process answers.
 * - GET /ready: 200 when it can do its work, else 503 and what is missing.
 *
 * They take any query: probes may add one against caches, and a 400 would tell them that the process is ill.
 */
export function probeRoutes(readiness: readonly ReadinessCheck[]): Router {
  const router = Router();
  router.get('/live', (_request, response) => {
    response.json({ success: true, data: { uptimeSeconds: Math.round(process.uptime()) } });
  });
  router.get('/ready', async (_request, response) => {
    const data = await checkReadiness(readiness);
    response.status(data.ready ? 200 : 503).json({ success: data.ready, data });
  });
  return refuseOtherMethods(router);
}

/** The probes, and GET /worker/health: 200 while at least one worker is alive, else 503. */
export function healthRoutes({ workers, readiness }: HealthSources): Router {
  const router = Router();
  router.use(probeRoutes(readiness));
  router.get('/worker/health', async (_request, response) => {
    const data = await workers.check();
    response.status(data.status === 'healthy' ? 200 : 503).json({ success: data.status === 'healthy', data });
  });
  return refuseOtherMethods(router);
}
