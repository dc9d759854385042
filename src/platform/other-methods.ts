import type { Router } from 'express';
import { HttpProblem } from './problem';

/**
 * Answers 405 with Allow where `router` knows the path but not the method. To be called when all its routes are there:
 * what comes later would not be reached.
 */
export function refuseOtherMethods(router: Router): Router {
  const methodsByPath = new Map<string, Set<string>>();
  for (const { route } of router.stack) {
    if (route === undefined) continue;
    const methods = methodsByPath.get(route.path) ?? new Set<string>();
    methodsByPath.set(route.path, methods);
    for (const { method } of route.stack) {
      methods.add(method.toUpperCase());
      if (method === 'get') methods.add('HEAD');
    }
  }
  for (const [path, methods] of methodsByPath) {
    const allow = [...methods, 'OPTIONS'].join(', ');
    router.all(path, (request, response) => {
      response.setHeader('Allow', allow);
      if (request.method !== 'OPTIONS') {
        throw new HttpProblem(
          405,
          'METHOD_NOT_ALLOWED',
          `${request.method} is not possible here; possible: ${allow}`,
        );
      }
      response.status(204).end();
    });
  }
  return router;
}
