import express, { type Express, type Router } from 'express';
import type { Logger } from '../platform/logger';
import { allowOrigins } from './cors';
import { answerErrors, unknownRoute } from './errors';
import { healthRoutes, type HealthSources } from './health.routes';
import { logRequests } from './request-log';

/** Where a pipeline's routes hang. */
export interface Mount {
  path: string;
  router: Router;
}

export interface AppOptions {
  logger: Logger;
  corsOrigins: readonly string[];
  bodyLimitBytes: number;
  health: HealthSources;
  mounts: readonly Mount[];
}

/** The Express application, not listening. It knows no pipeline; each brings its routes along. */
export function createApp(options: AppOptions): Express {
  const app = express();
  app.disable('x-powered-by');
  app.use(logRequests(options.logger));
  app.use(allowOrigins(options.corsOrigins));
  // Not strict: a bare string or null is valid JSON, and the route says that it wants an object.
  app.use(express.json({ limit: options.bodyLimitBytes, strict: false }));
  app.use('/api/v1', healthRoutes(options.health));
  for (const { path, router } of options.mounts) app.use(path, router);
  app.use(unknownRoute);
  app.use(answerErrors(options.logger));
  return app;
}
