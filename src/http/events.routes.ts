import { Router } from 'express';
import type { IngestionHealth } from '../ingestion/ingestion-health';
import { refuseOtherMethods } from '../platform/other-methods';

/** GET /events/health: 200 while event ingestion is well, else 503 and what is wrong. Of this process's ingester. */
export function eventsRoutes(health: () => IngestionHealth): Router {
  const router = Router();
  router.get('/health', (_request, response) => {
    const data = health();
    response.status(data.healthy ? 200 : 503).json({ success: data.healthy, data });
  });
  return refuseOtherMethods(router);
}
