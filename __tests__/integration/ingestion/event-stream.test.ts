import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import WebSocket from 'ws';
import { attachEventStream, type EventStream, type EventStreamOptions } from '../../../src/http/event-stream';
import { EventFeed } from '../../../src/ingestion/event-feed';
import { EventQueue } from '../../../src/ingestion/event-queue';
import { silentLogger } from '../../../src/platform/logger';
import { captureLogger } from '../../support/capture-logger';
import {
  CONTRACT_A,
  CONTRACT_B,
  decodeSymbolsOnly,
  makeEvent,
  makeEvents,
} from '../../support/ingestion-chain';
import { queueDirectory, until } from '../../support/ingestion-fixture';

const KEY = 'a-key-of-the-dashboard';
const directory = queueDirectory();
const queue = new EventQueue(directory.file(), 3);
const feed = new EventFeed(queue.store, decodeSymbolsOnly);
const cleanups: (() => void)[] = [];

interface Message {
  type: string;
  event?: { id: string; contractId: string; topics: unknown[] };
}

async function serve(
  options: Partial<EventStreamOptions> = {},
): Promise<{ url: string; server: Server; stream: EventStream }> {
  const server = createServer((_, response) => response.end());
  const stream = attachEventStream(server, {
    feed,
    apiKeys: [KEY],
    logger: silentLogger(),
    pollMs: 10,
    ...options,
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanups.push(() => {
    stream.close();
    server.close();
    server.closeAllConnections();
  });
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}/api/v1/events/stream`,
    server,
    stream,
  };
}

async function connect(url: string, headers: Record<string, string> = { 'x-api-key': KEY }) {
  const socket = new WebSocket(url, { headers });
  const messages: Message[] = [];
  socket.on('message', (data: Buffer) => messages.push(JSON.parse(data.toString()) as Message));
  cleanups.push(() => socket.terminate());
  await once(socket, 'open');
  await until(() => messages.some(({ type }) => type === 'ready'), 'ready');
  const ids = (): string[] => messages.flatMap(({ event }) => (event === undefined ? [] : [event.id]));
  return { socket, messages, ids };
}

const statusOf = async (socket: WebSocket): Promise<number | undefined> => {
  const [, response] = (await once(socket, 'unexpected-response')) as [
    unknown,
    { statusCode?: number; destroy(): void },
  ];
  response.destroy();
  return response.statusCode;
};
const store = (events: ReturnType<typeof makeEvents>): void =>
  void queue.enqueueBatch({ events, contractIds: [], position: null });
let ledger = 1_000;
const fresh = (count: number, contracts = [CONTRACT_A]) =>
  makeEvents(count, { firstLedger: (ledger += 100), contracts });

afterEach(() => cleanups.splice(0).forEach((cleanup) => cleanup()));
afterAll(() => {
  queue.close();
  directory.remove();
});

it('sends what is stored from now on, decoded, in order', async () => {
  store(fresh(5));
  const { url } = await serve();
  const client = await connect(url);
  const events = fresh(30);
  store(events);
  await until(() => client.ids().length === 30, 'the events');
  expect(client.ids()).toEqual(events.map(({ id }) => id));
  expect(client.messages.at(-1)?.event).toMatchObject({ contractId: CONTRACT_A, topics: ['transfer'] });
});

it('filters by contract and by topic', async () => {
  const { url } = await serve();
  const ofB = await connect(`${url}?contract=${CONTRACT_B}`);
  const minted = await connect(`${url}?topic=certificateminted&topic=tikka/draw`);
  const events = [
    ...fresh(4, [CONTRACT_A, CONTRACT_B]),
    makeEvent({ ledger: (ledger += 100), topics: ['certificate_minted'] }),
  ];
  store(events);
  await until(() => ofB.ids().length === 2 && minted.ids().length === 1, 'the events');
  expect(ofB.messages.every(({ event }) => event === undefined || event.contractId === CONTRACT_B)).toBe(
    true,
  );
  expect(minted.ids()).toEqual([events[4]!.id]);
});

it('resumes behind the event that a client has seen last, without loss or repetition', async () => {
  const { url } = await serve();
  const events = fresh(500);
  store(events);
  const client = await connect(`${url}?after=${events[99]!.id}`);
  await until(() => client.ids().length === 400, 'the rest');
  expect(client.ids()).toEqual(events.slice(100).map(({ id }) => id));
});

it('says so when it can no longer tell what came behind that event', async () => {
  store(fresh(1));
  const { url } = await serve();
  const client = await connect(`${url}?after=0000000000000000000-0000000000`);
  expect(client.messages[0]).toMatchObject({ type: 'gap' });
  await until(() => client.ids().length > 0, 'what is kept');
});

it('lets in only who has a key: by header, or by protocol where headers can’t be set', async () => {
  const { url } = await serve();
  expect(await statusOf(new WebSocket(url))).toBe(401);
  expect(await statusOf(new WebSocket(url, { headers: { 'x-api-key': 'a-key-of-the-dashboarD' } }))).toBe(
    401,
  );
  const key = `key.${Buffer.from(KEY).toString('base64url')}`;
  const browser = new WebSocket(url, ['sorolane.events.v1', key]);
  await once(browser, 'open');
  expect(browser.protocol).toBe('sorolane.events.v1');
  browser.terminate();
  const locked = await serve({ apiKeys: [] });
  expect(await statusOf(new WebSocket(locked.url, { headers: { 'x-api-key': '' } }))).toBe(401);
});

it('refuses a filter that is none, and one client too many', async () => {
  const { url } = await serve({ maxClients: 1 });
  const headers = { 'x-api-key': KEY };
  expect(await statusOf(new WebSocket(`${url}?topic=a//b`, { headers }))).toBe(400);
  await connect(url);
  expect(await statusOf(new WebSocket(url, { headers }))).toBe(503);
});

it('sends heartbeats, and cuts off who does not answer them', async () => {
  const { url, stream } = await serve({ heartbeatMs: 30 });
  const client = await connect(url);
  await until(() => client.messages.filter(({ type }) => type === 'heartbeat').length > 2, 'heartbeats');
  expect(client.socket.readyState).toBe(WebSocket.OPEN);
  const deaf = new WebSocket(url, { headers: { 'x-api-key': KEY }, autoPong: false });
  cleanups.push(() => deaf.terminate());
  await once(deaf, 'open');
  expect(stream.clients()).toBe(2);
  const [, reason] = (await once(deaf, 'close')) as [number, Buffer];
  expect(reason.toString()).toBe('no answer to the heartbeat');
});

it('drops a client that takes nothing, with the reason and where to resume, and holds up nobody for it', async () => {
  const events = fresh(2_000).map((event) => ({
    ...event,
    topic: [...event.topic, ...Array<string>(60).fill(event.topic[0]!)],
  }));
  store(events);
  const log = captureLogger();
  const { url, stream } = await serve({ stallMs: 150, maxBufferedBytes: 16 * 1024, logger: log.logger });
  const slow = new WebSocket(`${url}?after=${events[0]!.id}`, { headers: { 'x-api-key': KEY } });
  cleanups.push(() => slow.terminate());
  const closed = once(slow, 'close') as Promise<[number, Buffer]>;
  slow.once('open', () => slow.pause());
  await until(() => log.text().includes('event stream client dropped'), 'the server to lose patience');
  slow.resume();
  const [code, reason] = await closed;
  expect(code).toBe(1013);
  expect(reason.toString()).toMatch(/^too slow; resume with after=\d{19}-\d{10}$/);
  await until(() => stream.clients() === 0, 'its end');

  const after = reason.toString().split('=')[1]!;
  const patient = await serve();
  const client = await connect(`${patient.url}?after=${after}`);
  const rest = events.map(({ id }) => id).filter((id) => id > after);
  await until(() => client.ids().length === rest.length, 'the rest, in another try', 20_000);
  expect(client.ids()).toEqual(rest);
});

it('leaves other upgrades alone and says goodbye on shutdown', async () => {
  const { url, stream } = await serve();
  const client = await connect(url);
  const closed = once(client.socket, 'close') as Promise<[number, Buffer]>;
  stream.close();
  const [code, reason] = await closed;
  expect([code, reason.toString()]).toEqual([1001, 'the server is shutting down']);
});
