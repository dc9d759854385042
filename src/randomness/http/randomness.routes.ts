import { type RequestHandler, Router } from 'express';
import { refuseOtherMethods } from '../../platform/other-methods';
import { parseBody, parseInput, takesNoQuery } from '../../platform/problem';
import type { AuditTrail } from '../audit/audit-trail';
import type { OracleKeyring } from '../seeds/oracle-keyring';
import type { RandomnessGenerator } from '../seeds/randomness-generator';
import { auditQuerySchema, requestIdSchema, submitSchema, verifySchema } from './randomness.schemas';
import type { RandomnessService } from '../randomness.service';
import { auditRowView } from './views';

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

  router.post('/requests', requireApiKey, takesNoQuery, async (request, response) => {
    const { raffleId, prizeAmount, contractId, priority, requestId } = await parseBody(submitSchema, request);
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

  router.get('/requests/:requestId', takesNoQuery, async (request, response) => {
    const { requestId } = await parseInput(requestIdSchema, request.params);
    response.json({ success: true, data: await service.find(requestId) });
  });

  router.post('/verify', takesNoQuery, async (request, response) => {
    const { contractId, raffleId, seed, commitment, publicKey, ...claim } = await parseBody(
      verifySchema,
      request,
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

  router.get('/public-key', takesNoQuery, (_request, response) => {
    response.json({ success: true, data: { ...generator.publicKey(), active: keyring.activePublicKeys } });
  });

  // A key is not needed; one that is sent has to be right.
  const checkKeyIfSent: RequestHandler = (request, response, next) => {
    if (request.get('x-api-key') === undefined) next();
    else void requireApiKey(request, response, next);
  };
  router.get('/audit', checkKeyIfSent, async (request, response) => {
    const { limit, after, requestId, raffleId } = await parseInput(auditQuerySchema, request.query);
    const { rows, next } = await audit.page({
      limit,
      ...(after === undefined ? {} : { before: after }),
      ...(requestId === undefined ? {} : { requestId }),
      ...(raffleId === undefined ? {} : { raffleId }),
    });
    const isTrusted = request.get('x-api-key') !== undefined;
    response.json({ success: true, data: { rows: rows.map((row) => auditRowView(row, isTrusted)), next } });
  });

  return refuseOtherMethods(router);
}
