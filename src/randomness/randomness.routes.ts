import { type RequestHandler, Router } from 'express';
import { parseInput } from '../platform/problem';
import type { AuditTrail } from './audit-trail';
import type { OracleKeyring } from './oracle-keyring';
import type { RandomnessGenerator } from './randomness-generator';
import { auditQuerySchema, requestIdSchema, submitSchema, verifySchema } from './randomness.schemas';
import type { RandomnessService } from './randomness.service';

export interface RandomnessRoutesDeps {
  service: RandomnessService;
  generator: RandomnessGenerator;
  keyring: OracleKeyring;
  audit: AuditTrail;
  /** Guards whatever changes something. */
  requireApiKey: RequestHandler;
}

/** To be mounted at /api/v1/randomness, behind a JSON body parser. */
export function randomnessRoutes(deps: RandomnessRoutesDeps): Router {
  const { service, generator, keyring, audit, requireApiKey } = deps;
  const router = Router();

  router.post('/requests', requireApiKey, async (request, response) => {
    const { raffleId, prizeAmount, contractId, priority, requestId } = await parseInput(
      submitSchema,
      request.body ?? {},
    );
    const submitted = await service.submit({
      requestId,
      raffleId: raffleId ?? null,
      source: 'api',
      ...(contractId === undefined ? {} : { contractId }),
      ...(prizeAmount === undefined ? {} : { prizeXlm: prizeAmount }),
      ...(priority === undefined ? {} : { priority }),
    });
    response.status(202).json({ success: true, data: submitted });
  });

  router.get('/requests/:requestId', async (request, response) => {
    const { requestId } = await parseInput(requestIdSchema, request.params);
    response.json({ success: true, data: await service.find(requestId) });
  });

  router.post('/verify', async (request, response) => {
    const { contractId, raffleId, seed, commitment, publicKey, ...claim } = await parseInput(
      verifySchema,
      request.body ?? {},
    );
    const verdict = await service.verify({
      ...claim,
      ...(contractId === undefined ? {} : { contractId }),
      ...(raffleId === undefined ? {} : { raffleId }),
      ...(seed === undefined ? {} : { seed }),
      ...(commitment === undefined ? {} : { commitment }),
      ...(publicKey === undefined ? {} : { publicKey }),
    });
    response.json({ success: true, data: verdict });
  });

  router.get('/public-key', (_request, response) => {
    response.json({ success: true, data: { ...generator.publicKey(), active: keyring.activePublicKeys } });
  });

  router.get('/audit', async (request, response) => {
    const { limit, before, requestId, raffleId } = await parseInput(auditQuerySchema, request.query);
    const page = await audit.page({
      limit,
      ...(before === undefined ? {} : { before }),
      ...(requestId === undefined ? {} : { requestId }),
      ...(raffleId === undefined ? {} : { raffleId }),
    });
    response.json({ success: true, data: page });
  });

  return router;
}
