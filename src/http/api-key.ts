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
