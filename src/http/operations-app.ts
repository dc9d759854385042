import express, { type Express } from 'express';
import type { IngestionHealth } from '../ingestion/ingestion-health';
import type { ReadinessCheck } from '../operations/readiness';
import type { Scraper } from '../operations/scrape';
import type { Logger } from '../platform/logger';
import { answerErrors, unknownRoute } from './errors';
import { eventsRoutes } from './events.routes';
import { probeRoutes } from './health.routes';
import { metricsRoutes } from './metrics.routes';
import { logRequests } from './request-log';

export interface OperationsAppOptions {
  logger: Logger;
  scraper: Scraper;
  readiness: readonly ReadinessCheck[];
  /** Of this process's ingester, if it has one. */
  ingestion: (() => IngestionHealth) | null;
}

/**
 * For those who run the process, on a port of its own, without a key; nothing here changes anything.
 * - GET /health/live: this process answers, also while it drains.
 * - GET /health/ready: 200 when it can do its work, else 503 and what is missing.
 * - GET /metrics: Prometheus text.
 * - GET /api/v1/events/health: as on the API, where an ingester runs.
 */
export function createOperationsApp({
  logger,
  scraper,
  readiness,
  ingestion,
}: OperationsAppOptions): Express {
  const app = express();
  app.disable('x-powered-by');
  app.use(logRequests(logger));
  app.use('/health', probeRoutes(readiness));
  app.use(metricsRoutes(scraper));
  if (ingestion !== null) app.use('/api/v1/events', eventsRoutes(ingestion));
  app.use(unknownRoute);
  app.use(answerErrors(logger));
  return app;
}
