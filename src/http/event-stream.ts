import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';
import { z } from 'zod';
import { compileFilter, type EventFeed } from '../ingestion/event-feed';
import { describeFailure } from '../platform/errors';
import { shown } from '../platform/input-wording';
import type { Logger } from '../platform/logger';
import { makeKeyCheck } from './api-key';
import { closeCodes, EventStreamClient } from './event-stream-client';

export interface EventStreamOptions {
  feed: EventFeed;
  /** Who may listen. Without a key nobody may. */
  apiKeys: readonly string[];
  logger: Logger;
  path?: string;
  heartbeatMs?: number;
  /** A client that takes nothing for so long, while there is something to take, is dropped. */
  stallMs?: number;
  /** How often to look for new events, milliseconds. */
  pollMs?: number;
  maxClients?: number;
  /** Bytes that may wait for a client before reading on for it. */
  maxBufferedBytes?: number;
}

export interface EventStream {
  clients(): number;
  /** Tells every client that the server goes away, and stops. */
  close(): void;
}

/** Spoken by the server. A browser can't set headers, so it offers its key as a second one: `key.` + base64url(key). */
const PROTOCOL = 'sorolane.events.v1';
const KEY_PROTOCOL = 'key.';
const MAX_MESSAGE_BYTES = 1024;

const defaults = {
  path: '/api/v1/events/stream',
  heartbeatMs: 15_000,
  stallMs: 10_000,
  pollMs: 250,
  maxClients: 100,
  maxBufferedBytes: 256 * 1024,
};

const knownKeys = ['contract', 'topic', 'after'];
const list = z.array(z.string().max(200)).max(50);
const query = z.object({ contracts: list, topics: list, after: z.string().max(100).nullable() });

/**
 * `GET /api/v1/events/stream?contract=C…&topic=…&after=<event id>`, upgraded to a WebSocket: stored events as JSON
 * messages, in the order of storing. `contract` and `topic` may be repeated. With `after`, what came behind that event
 * is sent first; without, only what comes from now on.
 */
export function attachEventStream(server: Server, options: EventStreamOptions): EventStream {
  const { feed, apiKeys, logger, ...settings } = { ...defaults, ...options };
  const isKnownKey = makeKeyCheck(apiKeys);
  const clients = new Set<EventStreamClient>();
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_MESSAGE_BYTES,
    handleProtocols: (offered) => (offered.has(PROTOCOL) ? PROTOCOL : false),
  });

  const onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    // The HTTP server has let go of the socket: without a listener, a client that cuts it would end the process.
    socket.on('error', (error) => logger.debug({ ...describeFailure(error) }, 'an upgrade was cut off'));
    const url = parseTarget(request.url);
    if (url === null) {
      refuse(socket, '400 Bad Request');
      return;
    }
    if (url.pathname !== settings.path) {
      // Nobody else would answer, and a socket without an answer stays open for ever.
      if (server.listenerCount('upgrade') === 1) refuse(socket, '404 Not Found');
      return;
    }
    if (!keysOf(request).some(isKnownKey)) {
      refuse(socket, '401 Unauthorized');
      return;
    }
    if (clients.size >= settings.maxClients) {
      refuse(socket, '503 Service Unavailable');
      return;
    }
    const unknown = [...url.searchParams.keys()].find((key) => !knownKeys.includes(key));
    if (unknown !== undefined) {
      refuse(
        socket,
        '400 Bad Request',
        `the query key ${shown(unknown)} is not known; known: ${knownKeys.join(', ')}`,
      );
      return;
    }
    const parsed = query.safeParse({
      contracts: url.searchParams.getAll('contract'),
      topics: url.searchParams.getAll('topic'),
      after: url.searchParams.get('after'),
    });
    if (!parsed.success) {
      refuse(socket, '400 Bad Request');
      return;
    }
    const { after, ...filter } = parsed.data;
    let matches: ReturnType<typeof compileFilter>;
    try {
      matches = compileFilter(filter);
    } catch {
      refuse(socket, '400 Bad Request');
      return;
    }
    sockets.handleUpgrade(request, socket, head, (webSocket) => {
      const client = new EventStreamClient({ webSocket, feed, matches, after, logger, ...settings });
      clients.add(client);
      webSocket.once('close', () => clients.delete(client));
      client.start();
    });
  };
  server.on('upgrade', onUpgrade);

  const reading = setInterval(() => clients.forEach((client) => client.advance()), settings.pollMs);
  const beating = setInterval(() => clients.forEach((client) => client.beat()), settings.heartbeatMs);
  return {
    clients: () => clients.size,
    close: () => {
      clearInterval(reading);
      clearInterval(beating);
      server.off('upgrade', onUpgrade);
      for (const client of clients) client.drop(closeCodes.goingAway, 'the server is shutting down');
      sockets.close();
    },
  };
}

/** Null for a request target that is no URL (`//`), which any client may send. */
function parseTarget(target = '/'): URL | null {
  return URL.canParse(target, 'http://localhost') ? new URL(target, 'http://localhost') : null;
}

function keysOf(request: IncomingMessage): string[] {
  const header = request.headers['x-api-key'];
  const offered = (request.headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim());
  const fromProtocol = offered
    .filter((name) => name.startsWith(KEY_PROTOCOL))
    .map((name) => Buffer.from(name.slice(KEY_PROTOCOL.length), 'base64url').toString());
  return [...(typeof header === 'string' ? [header] : []), ...fromProtocol];
}

function refuse(socket: Duplex, status: string, problem = ''): void {
  const length = Buffer.byteLength(problem);
  const type = length === 0 ? '' : 'Content-Type: text/plain; charset=utf-8\r\n';
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\n${type}Content-Length: ${length}\r\n\r\n${problem}`);
}
