import type { RequestHandler } from 'express';

/** Lets browsers of the listed origins call the API; the default, an empty list, lets none. */
export function allowOrigins(origins: readonly string[]): RequestHandler {
  return (request, response, next) => {
    const origin = request.get('origin');
    response.vary('Origin');
    if (origin === undefined || !origins.includes(origin)) {
      next();
      return;
    }
    response.set({
      'access-control-allow-origin': origin,
      'access-control-allow-headers': 'content-type, x-api-key, x-request-id, idempotency-key',
      'access-control-allow-methods': 'GET, POST, OPTIONS',
    });
    if (request.method === 'OPTIONS') response.status(204).end();
    else next();
  };
}
