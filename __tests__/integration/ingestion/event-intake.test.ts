import { writeFileSync } from 'node:fs';
import { endOfLedger } from '../../../src/ingestion/chain-position';
import type { EventPropagator } from '../../../src/ingestion/event-propagator';
import type { RawEvent } from '../../../src/ingestion/event-source';
import { CONTRACT_A, CONTRACT_B, makeEvent, makeEvents, ScriptedChain } from '../../support/ingestion-chain';
import { queueDirectory, recordingHandler, until } from '../../support/ingestion-fixture';
import { makePropagator, type PropagatorParts } from '../../support/ingestion-propagator';

const directory = queueDirectory();
const running: EventPropagator[] = [];
let files = 0;

const newFile = (): string => directory.file(`intake${(files += 1)}.db`);

function start(parts: PropagatorParts): EventPropagator {
  const propagator = makePropagator({ queuePath: newFile(), ...parts });
  running.push(propagator);
  propagator.start();
  return propagator;
}
const caughtUp = (propagator: EventPropagator) =>
  until(() => propagator.health().lastRound?.kind === 'caught_up', 'catching up');
const stop = async (propagator: EventPropagator): Promise<void> => {
  running.splice(running.indexOf(propagator), 1);
  await propagator.stop();
};
const idsOf = (events: RawEvent[]) => events.map(({ id }) => id);

afterEach(async () => {
  await Promise.all(running.splice(0).map((propagator) => propagator.stop()));
});
afterAll(() => directory.remove());

describe('where reading begins', () => {
  it('is the newest ledger without a configured start, and never 0', async () => {
    const chain = new ScriptedChain(makeEvents(50), 104);
    const { handler, handled } = recordingHandler();
    start({ source: chain, startLedger: undefined, handlers: [handler] });
    await until(() => handled.length === 10, 'the events of the newest ledger');
    expect(chain.queries[0]).toMatchObject({ startLedger: 104 });
  });

  it('is stored before anything is read, so that a crash before the first page does not move it', async () => {
    const chain = new ScriptedChain([], 100);
    const queuePath = newFile();
    chain.faults.push(...Array.from({ length: 50 }, () => ({ kind: 'down' }) as const));
    const first = start({ source: chain, startLedger: undefined, queuePath });
    await until(() => first.health().failures > 0, 'a failed round');
    await stop(first);
    chain.faults.length = 0;
    chain.add(...makeEvents(30));
    const { handler, handled } = recordingHandler();
    start({ source: chain, startLedger: undefined, queuePath, handlers: [handler] });
    await until(() => handled.length === 30, 'all events');
  });

  it('is the stored cursor after a restart in the middle of a ledger', async () => {
    const events = makeEvents(60, { perLedger: 30 });
    const chain = new ScriptedChain(events, 101);
    chain.maxLimit = 7;
    chain.faults.push(null, null, ...Array.from({ length: 50 }, () => ({ kind: 'down' }) as const));
    const queuePath = newFile();
    const { handler, handled } = recordingHandler();
    const first = start({ source: chain, queuePath, handlers: [handler] });
    await until(() => handled.length === 14 && first.health().failures > 0, 'two pages');
    await stop(first);
    chain.faults.length = 0;
    const second = start({ source: chain, queuePath, handlers: [handler] });
    await until(() => handled.length >= 60, 'the rest');
    await caughtUp(second);
    expect([...handled].sort()).toEqual(idsOf(events));
  });

  it('is the override, when there is one', async () => {
    const chain = new ScriptedChain(makeEvents(100), 109);
    const { handler, handled } = recordingHandler();
    const propagator = start({ source: chain, cursorOverride: endOfLedger(104), handlers: [handler] });
    await caughtUp(propagator);
    await until(() => handled.length === 50, 'the later half');
  });
});

describe('paging', () => {
  it('follows the cursor over empty pages', async () => {
    const chain = new ScriptedChain([makeEvent({ ledger: 900 })], 1_000);
    chain.scanLedgers = 100;
    const { handler, handled } = recordingHandler();
    const propagator = start({ source: chain, handlers: [handler] });
    await until(() => handled.length === 1, 'the event behind eight empty pages');
    await caughtUp(propagator);
    expect(propagator.queue.store.positions().get(CONTRACT_A)).toEqual({ cursor: endOfLedger(1_000) });
  });

  it('reads page after page in one round until it has caught up', async () => {
    const events = makeEvents(500);
    const chain = new ScriptedChain(events, 149);
    const { handler, handled } = recordingHandler({ batch: 50 });
    start({ source: chain, handlers: [handler], tuning: { pageLimit: 20, pollIntervalMs: 60_000 } });
    await until(() => handled.length === 500, 'all events');
    expect(chain.queries.length).toBeGreaterThanOrEqual(25);
  });

  it('reads contracts in groups that one request can hold, and finds every event of each', async () => {
    const contracts = Array.from({ length: 60 }, (_, n) => `C${String(n).padStart(55, 'A')}`);
    const events = makeEvents(300, { contracts });
    const chain = new ScriptedChain(events, 129);
    const { handler, handled } = recordingHandler({ batch: 10 });
    const propagator = start({ source: chain, contractIds: contracts, handlers: [handler] });
    await until(() => handled.length === 300, 'all events');
    await caughtUp(propagator);
    expect(Math.max(...chain.queries.map(({ contractIds }) => contractIds.length))).toBeLessThanOrEqual(25);
  });

  it('reads a contract that was added later from its own start', async () => {
    const events = makeEvents(200, { contracts: [CONTRACT_A, CONTRACT_B] });
    const chain = new ScriptedChain(events, 119);
    const queuePath = newFile();
    const { handler, handled } = recordingHandler({ batch: 10 });
    const first = start({ source: chain, queuePath, handlers: [handler] });
    await until(() => handled.length === 100, 'events of A');
    await stop(first);
    start({ source: chain, queuePath, contractIds: [CONTRACT_A, CONTRACT_B], handlers: [handler] });
    await until(() => handled.length === 200, 'events of B');
    expect([...handled].sort()).toEqual(idsOf(events));
  });

  it('asks for less when a request is too heavy, and for more again later', async () => {
    const events = makeEvents(300);
    const chain = new ScriptedChain(events, 129);
    chain.faults.push({ kind: 'too_heavy' }, { kind: 'too_heavy' }, { kind: 'too_heavy' });
    const { handler, handled } = recordingHandler({ batch: 10 });
    start({ source: chain, handlers: [handler], tuning: { pageLimit: 80 } });
    await until(() => handled.length === 300, 'all events');
    const limits = chain.queries.map(({ limit }) => limit);
    expect(limits.slice(0, 4)).toEqual([80, 40, 20, 10]);
    expect(Math.max(...limits.slice(4))).toBeGreaterThan(10);
  });
});

describe('what servers do', () => {
  it('duplicates across pages and servers are stored once', async () => {
    const events = makeEvents(40);
    const chain = new ScriptedChain(events, 103);
    const { handler, handled } = recordingHandler();
    const propagator = start({ source: chain, handlers: [handler] });
    await until(() => handled.length === 40, 'all events');
    propagator.queue.store.moveTo(new Map([[CONTRACT_A, { startLedger: 100 }]]));
    chain.add(makeEvent({ ledger: 104 }));
    await until(() => handled.length === 41, 'the new event');
    expect(new Set(handled).size).toBe(41);
    expect(propagator.getQueueStats().total).toBe(41);
  });

  it('a window that has moved past us is a gap, recorded with both ends, and reading goes on', async () => {
    const events = makeEvents(100);
    const chain = new ScriptedChain(events, 109);
    const { handler, handled } = recordingHandler();
    const queuePath = newFile();
    chain.latest = 102;
    const first = start({ source: chain, queuePath, handlers: [handler] });
    await until(() => handled.length === 30, 'the first three ledgers');
    await stop(first);
    chain.latest = 109;
    chain.oldest = 106;
    const second = start({ source: chain, queuePath, handlers: [handler] });
    await until(() => handled.length === 70, 'what is left');
    expect(second.queue.store.gaps()).toMatchObject([
      { contractId: CONTRACT_A, fromLedger: 103, toLedger: 105, reason: 'retention' },
    ]);
    expect(second.health()).toMatchObject({ healthy: false });
    expect(second.health().problems.join()).toContain('gap');
  });

  it('quiet ledgers, and a window that ends where we stand, are no gap', async () => {
    const chain = new ScriptedChain(makeEvents(10), 100);
    const { handler, handled } = recordingHandler();
    const queuePath = newFile();
    const first = start({ source: chain, queuePath, handlers: [handler] });
    await until(() => handled.length === 10, 'the first ledger');
    await caughtUp(first);
    await stop(first);
    chain.add(makeEvent({ ledger: 500 }));
    chain.oldest = 101;
    const second = start({ source: chain, queuePath, handlers: [handler] });
    await until(() => handled.length === 11, 'the late event');
    expect(second.queue.store.gaps()).toEqual([]);
  });

  it('a server that lags behind us is waited for: no gap, no way back', async () => {
    const chain = new ScriptedChain(makeEvents(100), 109);
    const { handler, handled } = recordingHandler();
    const propagator = start({ source: chain, handlers: [handler] });
    await until(() => handled.length === 100, 'all events');
    await caughtUp(propagator);
    chain.faults.push(...Array.from({ length: 10 }, () => ({ kind: 'lagging', by: 20 }) as const));
    await until(() => propagator.health().lastRound?.kind === 'lagging', 'the lagging server');
    await caughtUp(propagator);
    expect(propagator.queue.store.gaps()).toEqual([]);
    expect(propagator.queue.store.positions().get(CONTRACT_A)).toEqual({ cursor: endOfLedger(109) });
    chain.add(makeEvent({ ledger: 110 }));
    await until(() => handled.length === 101, 'the next event');
  });

  it('an outage is waited out, and shown meanwhile', async () => {
    const chain = new ScriptedChain(makeEvents(20), 101);
    chain.faults.push(...Array.from({ length: 5 }, () => ({ kind: 'down' }) as const));
    const { handler, handled } = recordingHandler();
    const propagator = start({ source: chain, handlers: [handler] });
    await until(() => propagator.health().failures > 1, 'failures');
    expect(propagator.health()).toMatchObject({ healthy: false, lastFailure: { code: 'RPC_DOWN' } });
    await until(() => handled.length === 20, 'all events');
    await until(() => propagator.health().failures === 0, 'recovery');
  });

  it('events that are no events are kept for inspection and stop nobody', async () => {
    const events = makeEvents(5);
    const broken = [
      { ...events[1]!, value: 'AAAA' },
      { ...events[2]!, topic: ['not base64 xdr'] },
      { ...events[3]!, ledgerClosedAt: 'yesterday' },
    ];
    const chain = new ScriptedChain([events[0]!, ...broken, events[4]!], 100);
    const { handler, handled } = recordingHandler();
    const propagator = start({ source: chain, handlers: [handler] });
    await until(() => propagator.getQueueStats().processed === 2, 'the good ones');
    await caughtUp(propagator);
    expect(handled).toEqual([events[0]!.id, events[4]!.id]);
    const letters = propagator.queue.deadLetters.list({}, { limit: 10 });
    expect(letters.map(({ eventId, handler: to, code }) => [eventId, to, code])).toEqual(
      broken.map(({ id }) => [id, null, 'MALFORMED_EVENT']),
    );
    expect(propagator.getQueueStats()).toMatchObject({ failed: 3, processed: 2, pending: 0 });
    expect(propagator.queue.store.positions().get(CONTRACT_A)).toEqual({ cursor: endOfLedger(100) });
  });

  it('answers without the fields of an event are kept as well', async () => {
    const [good] = makeEvents(1) as [RawEvent];
    const chain = new ScriptedChain([good], 100);
    const fetchEvents = chain.fetchEvents.bind(chain);
    chain.fetchEvents = async (query) => {
      const answer = await fetchEvents(query);
      if (answer.kind === 'page') answer.page.events.push({ hello: 'world' } as unknown as RawEvent);
      return answer;
    };
    const { handler, handled } = recordingHandler();
    const propagator = start({ source: chain, handlers: [handler] });
    await until(() => handled.length === 1 && propagator.getQueueStats().failed === 1, 'both');
    await caughtUp(propagator);
    expect(propagator.getQueueStats().total).toBe(2);
  });
});

it('a lost queue file without a shared checkpoint is a gap, not a fresh start', async () => {
  const queuePath = newFile();
  writeFileSync(queuePath, `SQLite format 3\0${'garbage '.repeat(1_000)}`);
  const chain = new ScriptedChain(makeEvents(50), 104);
  const propagator = start({ source: chain, startLedger: undefined, queuePath });
  await caughtUp(propagator);
  expect(propagator.queue.store.gaps()).toMatchObject([
    { fromLedger: null, toLedger: 103, reason: 'file_lost' },
  ]);
  expect(propagator.health().problems.join()).toContain('set aside');
});

describe('bounds', () => {
  it('pauses reading while handlers are behind, and goes on once they have caught up', async () => {
    const chain = new ScriptedChain(makeEvents(400), 139);
    let open: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => (open = resolve));
    const { handler, handled } = recordingHandler({ batch: 10 }, () => gate);
    const propagator = start({
      source: chain,
      handlers: [handler],
      tuning: { maxPending: 100, pageLimit: 50 },
    });
    await until(() => propagator.health().lastRound?.kind === 'back_pressure', 'back-pressure');
    expect(propagator.getQueueStats().total).toBeLessThanOrEqual(150);
    open();
    await until(() => handled.length === 400, 'all events');
  });

  it('a full file moves no cursor, shows in health, and fills on by itself once there is room', async () => {
    const events = makeEvents(3_000, { perLedger: 100 });
    const chain = new ScriptedChain(events, 129);
    let open: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => (open = resolve));
    const { handler, handled } = recordingHandler({ batch: 50 }, () => gate);
    const propagator = start({
      source: chain,
      handlers: [handler],
      tuning: { maxFileBytes: 700 * 1024, pageLimit: 100 },
    });
    await until(() => propagator.health().storageFull, 'a full file');
    const stored = propagator.getQueueStats().total;
    expect(stored).toBeLessThan(3_000);
    const { cursor } = propagator.queue.store.positions().get(CONTRACT_A)!;
    expect(cursor).toBe(events[stored - 1]!.id);
    open();
    await until(() => handled.length === 3_000, 'all events');
    expect(new Set(handled).size).toBe(3_000);
    await until(() => !propagator.health().storageFull, 'room');
  });
});
