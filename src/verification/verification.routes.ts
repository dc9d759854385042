import { type Request, type RequestHandler, Router } from 'express';
import { refuseOtherMethods } from '../platform/other-methods';
import { HttpProblem, notFound, parseBody, parseInput, takesNoQuery } from '../platform/problem';
import { idempotencyHeaderSchema, idSchema, listSchema, submitSchema } from './verification.schemas';
import type { VerificationService } from './verification.service';

export interface VerificationRoutesDeps {
  service: VerificationService;
  /** Guards whatever changes something. */
  requireApiKey: RequestHandler;
}

/** To be mounted at /api/v1/verification, behind a JSON body parser. */
export function verificationRoutes({ service, requireApiKey }: VerificationRoutesDeps): Router {
  const router = Router();

  router.post('/requests', requireApiKey, takesNoQuery, async (request, response) => {
    const { idempotencyKey: inBody, ...submission } = await parseBody(submitSchema, request);
    const inHeader = await idempotencyHeader(request);
    if (inBody !== undefined && inHeader !== undefined && inBody !== inHeader) {
      throw new HttpProblem(400, 'VALIDATION_FAILED', 'two different idempotency keys were given', [
        { field: 'idempotencyKey', problem: 'differs from the Idempotency-Key header' },
      ]);
    }
    const submitted = await service.submitByKey(submission, inHeader ?? inBody);
    response.status(202).json({ success: true, data: submitted });
  });

  router.get('/requests/:id', takesNoQuery, async (request, response) => {
    const { id } = await parseInput(idSchema, request.params);
    const found = await service.findRequest(id);
    if (found === null) throw notFound('verification request');
    response.json({ success: true, data: found });
  });

  router.get('/jobs', async (request, response) => {
    const { ownerPublicKey, limit, after } = await parseInput(listSchema, request.query);
    response.json({ success: true, data: await service.listJobs(ownerPublicKey, limit, after) });
  });

  router.get('/jobs/:id', takesNoQuery, async (request, response) => {
    const { id } = await parseInput(idSchema, request.params);
    const found = await service.findJob(id);
    if (found === null) throw notFound('verification job');
    response.json({ success: true, data: found });
  });

  return refuseOtherMethods(router);
}

async function idempotencyHeader(request: Request): Promise<string | undefined> {
  const parsed = await parseInput(idempotencyHeaderSchema, {
    'idempotency-key': request.get('idempotency-key'),
  });
  return parsed['idempotency-key'];
}
