import { createHash, timingSafeEqual } from 'node:crypto';
import type { RequestHandler } from 'express';
import { HttpProblem } from '../platform/problem';

const digest = (key: string): Buffer => createHash('sha256').update(key).digest();

/** Whether `candidate` is one of `keys`. Every key is compared, over digests of one length, so the time taken tells nothing. */
export function makeKeyCheck(keys: readonly string[]): (candidate: string) => boolean {
  const digests = keys.map(digest);
  return (candidate) => {
    const presented = digest(candidate);
    return digests.reduce((matched, key) => timingSafeEqual(key, presented) || matched, false);
  };
}

/** Lets a request pass that carries one of `keys` in its x-api-key header; any other gets 401. */
export function requireApiKey(keys: readonly string[]): RequestHandler {
  const isKnown = makeKeyCheck(keys);
  return (request, _response, next) => {
    const presented = request.get('x-api-key');
    if (presented === undefined)
      throw new HttpProblem(
        401,
        'API_KEY_REQUIRED',
        'This call changes something: send one of API_KEYS in the header x-api-key',
      );
    if (!isKnown(presented))
      throw new HttpProblem(401, 'API_KEY_INVALID', 'The key in the header x-api-key is not one of API_KEYS');
    next();
  };
}

const BEARER = /^Bearer (\S+)$/i;

/**
 * For a read that tells more than everyone need know. One of `keys` opens it, in x-api-key or, as a Prometheus server sends
 * it, as a bearer token. Without keys it is open.
 */
export function requireReaderKey(keys: readonly string[]): RequestHandler {
  const isKnown = makeKeyCheck(keys);
  return (request, response, next) => {
    const presented = request.get('x-api-key') ?? BEARER.exec(request.get('authorization') ?? '')?.[1];
    if (keys.length === 0 || (presented !== undefined && isKnown(presented))) {
      next();
      return;
    }
    response.set('www-authenticate', 'Bearer');
    throw presented === undefined
      ? new HttpProblem(
          401,
          'API_KEY_REQUIRED',
          'Send one of API_KEYS in the header x-api-key, or as a bearer token',
        )
      : new HttpProblem(401, 'API_KEY_INVALID', 'The key that was sent is not one of API_KEYS');
  };
}
