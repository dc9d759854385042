import { Router, type RequestHandler } from 'express';
import type { Scraper } from '../operations/scrape';
import { refuseOtherMethods } from '../platform/other-methods';

/** GET /metrics: this process's figures and the shared ones, as Prometheus text. */
export function metricsRoutes(scraper: Scraper, ...guards: RequestHandler[]): Router {
  const router = Router();
  router.get('/metrics', ...guards, async (_request, response) => {
    const { contentType, body } = await scraper.scrape();
    response.set('content-type', contentType).send(body);
  });
  return refuseOtherMethods(router);
}
