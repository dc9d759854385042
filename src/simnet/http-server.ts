import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

/** Requests above this are cut off; a Soroban envelope is at most a few hundred kilobytes, an upload more. */
const maxBodyBytes = 128 * 1024 * 1024;

export type HttpHandler = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

export interface Listener {
  port: number;
  origin: string;
  close(): Promise<void>;
}

/** Listens on loopback only: what is simulated here must never be reachable from outside. */
export const listen = async (handler: HttpHandler, port: number): Promise<Listener> => {
  const server = createServer((request, response) => {
    handler(request, response).catch(() => request.socket.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  const address = server.address();
  const actual = typeof address === 'object' && address ? address.port : port;
  return {
    port: actual,
    origin: `http://127.0.0.1:${actual}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};

export const readBody = async (request: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBodyBytes) throw new RangeError('request body is too large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
};

export const sendJson = (
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void => {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
};

export const sendInjectedStatus = (
  response: ServerResponse,
  { status, retryAfterSeconds }: { status: number; retryAfterSeconds?: number | undefined },
): void => {
  const headers = retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) };
  response.writeHead(status, headers).end('injected fault');
};

/** Keeps a request hanging, as a node that has stopped answering does, and then cuts the connection. */
export const holdAndCut = async (request: IncomingMessage, holdMs: number): Promise<void> => {
  const gone = new AbortController();
  request.socket.once('close', () => gone.abort());
  await delay(holdMs, undefined, { signal: gone.signal, ref: false }).catch(() => undefined);
  request.socket.destroy();
};
