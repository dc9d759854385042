import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import WebSocket from 'ws';
import { attachEventStream, type EventStream } from '../../../src/http/event-stream';
import { EventFeed } from '../../../src/ingestion/event-feed';
import { EventQueue } from '../../../src/ingestion/event-queue';
import { silentLogger } from '../../../src/platform/logger';
import { decodeSymbolsOnly } from '../../support/ingestion-chain';
import { queueDirectory, until } from '../../support/ingestion-fixture';

const KEY = 'a-key-of-the-dashboard';
const directory = queueDirectory();
const queue = new EventQueue(directory.file());
let server: Server;
let stream: EventStream;
let port: number;

beforeAll(async () => {
  server = createServer((_, response) => response.end('alive'));
  stream = attachEventStream(server, {
    feed: new EventFeed(queue.store, decodeSymbolsOnly),
    apiKeys: [KEY],
    logger: silentLogger(),
    maxClients: 20,
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  port = (server.address() as AddressInfo).port;
});
afterAll(() => {
  stream.close();
  server.close();
  server.closeAllConnections();
  queue.close();
  directory.remove();
});

function upgrade(target: string, headers: string[] = []): Socket {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  const lines = [
    `GET ${target} HTTP/1.1`,
    'Host: x',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    ...headers,
  ];
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  return socket;
}

async function answerOf(socket: Socket): Promise<string> {
  let text = '';
  socket.on('data', (chunk: Buffer) => (text += chunk.toString()));
  await once(socket, 'close');
  return text.split('\r\n')[0] ?? '';
}
const isAlive = async (): Promise<boolean> => (await fetch(`http://127.0.0.1:${port}/`)).status === 200;

it.each(['//', 'http://[', '/\\', 'http://x:99999/'])(
  'a target that is no URL (%s) is refused',
  async (target) => {
    expect(await answerOf(upgrade(target))).toMatch(/^HTTP\/1\.1 4\d\d /);
    expect(await isAlive()).toBe(true);
  },
);

it('a query key that is not known is refused', async () => {
  const headers = [`x-api-key: ${KEY}`];
  expect(await answerOf(upgrade('/api/v1/events/stream?contracts=C', headers))).toBe(
    'HTTP/1.1 400 Bad Request',
  );
});

it('an upgrade that nobody serves is refused, and does not stay open', async () => {
  expect(await answerOf(upgrade('/elsewhere'))).toBe('HTTP/1.1 404 Not Found');
});

it('connections that are cut while they are refused harm nobody', async () => {
  const cut = Array.from({ length: 50 }, (_, n) =>
    upgrade(n % 2 === 0 ? '/api/v1/events/stream' : '/elsewhere'),
  );
  await Promise.all(cut.map((socket) => once(socket, 'connect')));
  cut.forEach((socket) => socket.resetAndDestroy());
  expect(await isAlive()).toBe(true);
});

it.each([
  ['no key', []],
  ['a wrong key', ['x-api-key: guessed']],
  ['an empty key', ['x-api-key: ']],
  ['a key that is no base64', ['Sec-WebSocket-Protocol: sorolane.events.v1, key.%%%']],
])('%s is refused', async (_, headers) => {
  expect(await answerOf(upgrade('/api/v1/events/stream', headers))).toBe('HTTP/1.1 401 Unauthorized');
});

it('a frame larger than anything a client has to say ends its connection', async () => {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/api/v1/events/stream`, {
    headers: { 'x-api-key': KEY },
  });
  socket.on('error', () => undefined);
  await once(socket, 'open');
  socket.send(Buffer.alloc(4 * 1024 * 1024));
  const [code] = (await once(socket, 'close')) as [number];
  expect([1006, 1009]).toContain(code);
  await until(() => stream.clients() === 0, 'the client to be gone');
});

it('takes a thousand connects at once as far as allowed, and is as free as before once they leave', async () => {
  const outcomes = await Promise.all(
    Array.from({ length: 1_000 }, async () => {
      const socket = new WebSocket(`ws://127.0.0.1:${port}/api/v1/events/stream`, {
        headers: { 'x-api-key': KEY },
      });
      socket.on('error', () => undefined);
      const opened = once(socket, 'open').then(() => true);
      const refused = once(socket, 'unexpected-response').then(() => false);
      return { socket, isOpen: await Promise.race([opened, refused]) };
    }),
  );
  expect(outcomes.filter(({ isOpen }) => isOpen)).toHaveLength(20);
  expect(stream.clients()).toBe(20);
  outcomes.forEach(({ socket }) => socket.terminate());
  await until(() => stream.clients() === 0, 'all to be gone');
});
