import type { ServerResponse } from 'node:http';
import { sendJson } from './http-server';
import type { Observer } from './observer';

const jsonSafe = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (_key, item: unknown) => (typeof item === 'bigint' ? item.toString() : item)),
  );

/** The observer's answers for another process. */
export const serveObserver = (
  observer: Observer,
  facts: () => unknown,
  path: string,
  response: ServerResponse,
): void => {
  const answers: Record<string, () => unknown> = {
    '/observer/facts': facts,
    '/observer/certificates': () => observer.certificates(),
    '/observer/raffle-requests': () => observer.raffleRequests(),
    '/observer/raffle-deliveries': () => observer.raffleDeliveries(),
    '/observer/transactions': () => observer.transactions(),
    '/observer/events': () => observer.events(),
    '/observer/stats': () => observer.stats(),
  };
  const answer = answers[path];
  if (!answer) sendJson(response, 404, { error: 'not found', paths: Object.keys(answers) });
  else sendJson(response, 200, jsonSafe(answer()));
};
