import type { RequestHandler } from 'express';
import { makeRequestId } from '../platform/ids';
import type { Logger } from '../platform/logger';

const CLIENT_ID = /^[\w.-]{1,64}$/;

/** Gives each request an id (the caller's own where it is a plain one), answers with it, and logs the end of it. */
export function logRequests(logger: Logger): RequestHandler {
  return (request, response, next) => {
    const presented = request.get('x-request-id');
    const requestId = presented !== undefined && CLIENT_ID.test(presented) ? presented : makeRequestId();
    const startedAt = performance.now();
    response.setHeader('x-request-id', requestId);
    response.on('finish', () => {
      const durationMs = Math.round(performance.now() - startedAt);
      logger.debug(
        {
          requestId,
          method: request.method,
          path: request.originalUrl,
          status: response.statusCode,
          durationMs,
        },
        'request',
      );
    });
    next();
  };
}
