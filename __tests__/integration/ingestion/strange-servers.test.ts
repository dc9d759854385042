import { endOfLedger } from '../../../src/ingestion/chain-position';
import type { EventPropagator } from '../../../src/ingestion/event-propagator';
import type { EventPageResult, EventQuery } from '../../../src/ingestion/event-source';
import { PermanentError, TimeoutError } from '../../../src/platform/errors';
import { decodeContractValue } from '../../../src/stellar/scval-codec';
import { captureLogger } from '../../support/capture-logger';
import { CONTRACT_A, CONTRACT_B, makeEvent, makeEvents, ScriptedChain } from '../../support/ingestion-chain';
import { ManualClock, queueDirectory, recordingHandler, until } from '../../support/ingestion-fixture';
import { makePropagator, type PropagatorParts } from '../../support/ingestion-propagator';

const directory = queueDirectory();
const running: EventPropagator[] = [];
let files = 0;

function start(parts: PropagatorParts): EventPropagator {
  const propagator = makePropagator({ queuePath: directory.file(`strange${(files += 1)}.db`), ...parts });
  running.push(propagator);
  propagator.start();
  return propagator;
}
const problemsOf = (propagator: EventPropagator): string => propagator.health().problems.join('\n');
const cursorOf = (propagator: EventPropagator) => propagator.queue.store.positions().get(CONTRACT_A);

afterEach(async () => {
  await Promise.all(running.splice(0).map((propagator) => propagator.stop(100)));
});
afterAll(() => directory.remove());

it('a network that begins anew behind where we stand shows in health instead of looking idle', async () => {
  const clock = new ManualClock(Date.now());
  const chain = new ScriptedChain(makeEvents(10, { firstLedger: 500 }), 505);
  const propagator = start({ source: chain, startLedger: 500, clock });
  await until(() => propagator.health().lastRound?.kind === 'caught_up', 'the tip');
  expect(propagator.health().healthy).toBe(true);
  chain.latest = 40;
  await until(() => propagator.health().lastRound?.kind === 'lagging', 'the other history');
  expect(propagator.health().healthy).toBe(true);
  clock.advance(61_000);
  expect(problemsOf(propagator)).toContain('lagging');
  expect(cursorOf(propagator)).toEqual({ cursor: endOfLedger(505) });
  expect(propagator.queue.store.gaps()).toEqual([]);
});

it('a server that can’t serve even the smallest page shows in health', async () => {
  const clock = new ManualClock(Date.now());
  const chain = new ScriptedChain(makeEvents(10), 105);
  chain.faults.push(...Array.from({ length: 10_000 }, () => ({ kind: 'too_heavy' as const })));
  const propagator = start({ source: chain, clock });
  await until(() => propagator.health().lastRound?.kind === 'too_heavy', 'the refusal');
  clock.advance(61_000);
  expect(problemsOf(propagator)).toContain('too_heavy');
});

it('a cursor beyond the server’s own newest ledger is not believed', async () => {
  const chain = new ScriptedChain(makeEvents(10), 105);
  const answer = chain.fetchEvents.bind(chain);
  jest.spyOn(chain, 'fetchEvents').mockImplementation(async (query: EventQuery): Promise<EventPageResult> => {
    const result = await answer(query);
    return result.kind === 'page'
      ? { kind: 'page', page: { ...result.page, cursor: endOfLedger(9_000_000) } }
      : result;
  });
  const seen = recordingHandler();
  const propagator = start({ source: chain, handlers: [seen.handler] });
  await until(() => seen.handled.length === 10, 'the first events');
  chain.add(...makeEvents(3, { firstLedger: 110 }));
  await until(() => seen.handled.length === 13, 'what came after');
  expect(cursorOf(propagator)).toEqual({ cursor: endOfLedger(110) });
});

it('one id with two contents is stored once, and told', async () => {
  const [event] = makeEvents(1);
  const log = captureLogger();
  const chain = new ScriptedChain([event!], 100);
  const seen = recordingHandler();
  const propagator = start({ source: chain, handlers: [seen.handler], logger: log.logger });
  await until(() => seen.handled.length === 1, 'the event');
  const page = { contractIds: [CONTRACT_A], position: null };
  expect(propagator.queue.enqueueBatch({ ...page, events: [{ ...event!, type: 'other' }] })).toEqual({
    kind: 'stored',
    inserted: 0,
    duplicates: 1,
    contradictions: 0,
  });
  chain.events[0] = { ...event!, txHash: 'f'.repeat(64) };
  propagator.queue.store.moveTo(new Map([[CONTRACT_A, { startLedger: 100 }]]));
  await until(() => log.text().includes('another content'), 'the warning');
  expect(propagator.queue.store.read(1)).toEqual(event);
  expect(seen.handled).toHaveLength(1);
});

it('a contract that servers refuse holds up no other', async () => {
  const chain = new ScriptedChain(makeEvents(5, { firstLedger: 900 }), 905);
  const answer = chain.fetchEvents.bind(chain);
  jest
    .spyOn(chain, 'fetchEvents')
    .mockImplementation((query: EventQuery) =>
      query.contractIds.includes(CONTRACT_B)
        ? Promise.reject(new PermanentError('RPC_REFUSED', 'contract ID 1 invalid'))
        : answer(query),
    );
  const seen = recordingHandler();
  const propagator = makePropagator({
    source: chain,
    handlers: [seen.handler],
    contractIds: [CONTRACT_A, CONTRACT_B],
    queuePath: directory.file('refused.db'),
  });
  running.push(propagator);
  propagator.queue.store.moveTo(
    new Map([
      [CONTRACT_A, { startLedger: 900 }],
      [CONTRACT_B, { startLedger: 1 }],
    ]),
  );
  propagator.start();
  await until(() => seen.handled.length === 5, 'the other contract');
  expect(propagator.health().lastFailure?.code).toBe('RPC_REFUSED');
});

it('asks for less when an answer takes too long', async () => {
  const chain = new ScriptedChain(makeEvents(100), 120);
  const answer = chain.fetchEvents.bind(chain);
  jest
    .spyOn(chain, 'fetchEvents')
    .mockImplementation((query: EventQuery) =>
      query.limit > 20 ? Promise.reject(new TimeoutError('RPC_TIMEOUT', 'no answer')) : answer(query),
    );
  const seen = recordingHandler();
  start({ source: chain, handlers: [seen.handler], tuning: { pageLimit: 200 } });
  await until(() => seen.handled.length === 100, 'all events');
});

it('huge values and values of unknown kinds are stored whole, and hold up nobody', async () => {
  const bytes = Buffer.alloc(8 + 64 * 1024);
  bytes.writeUInt32BE(13, 0);
  bytes.writeUInt32BE(64 * 1024, 4);
  // A vector in a vector in a vector …, deeper than any stack.
  const deep = Buffer.concat(
    Array.from({ length: 20_000 }, () => Buffer.from([0, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0, 1])),
  );
  const values = [
    bytes.toString('base64'),
    deep.toString('base64'),
    Buffer.from([0, 0, 0, 99]).toString('base64'),
    'not base64 at all',
    '',
  ];
  const events = [
    ...values.map((value, transaction) => makeEvent({ ledger: 100, transaction: transaction + 1, value })),
    makeEvent({ ledger: 101 }),
  ];
  const seen = recordingHandler();
  const propagator = start({
    source: new ScriptedChain(events, 101),
    decode: decodeContractValue,
    handlers: [seen.handler],
  });
  await until(() => seen.handled.includes(events.at(-1)!.id), 'the good one');
  await until(() => propagator.getQueueStats().failed === 4, 'the quarantine');
  expect(seen.handled).toEqual([events[0]!.id, events.at(-1)!.id]);
  expect(cursorOf(propagator)).toEqual({ cursor: endOfLedger(101) });
});

it('a start ledger of 0 means the newest', async () => {
  const chain = new ScriptedChain(makeEvents(10), 105);
  const propagator = start({ source: chain, startLedger: 0 });
  await until(() => cursorOf(propagator)?.cursor === endOfLedger(105), 'the tip');
  expect(chain.queries[0]).toMatchObject({ startLedger: 105 });
  expect(propagator.queue.store.gaps()).toEqual([]);
});

it('a clock that goes back delays nothing for ever and steals nothing', async () => {
  const clock = new ManualClock();
  let tries = 0;
  const seen = recordingHandler({ retry: { baseDelayMs: 50, maxDelayMs: 50 } }, () => {
    if ((tries += 1) === 1) throw new Error('once');
  });
  const propagator = start({
    source: new ScriptedChain(makeEvents(1), 100),
    clock,
    handlers: [seen.handler],
  });
  await until(() => tries === 1 && propagator.getQueueStats().retrying === 1, 'the back-off');
  const due = propagator.queue.deliveries.nextDueAt()!;
  clock.advance(-3_600_000);
  await until(
    () => propagator.queue.deliveries.nextDueAt()! === due - 3_600_000,
    'the wait to be as long as before',
  );
  clock.advance(100);
  await until(() => seen.handled.length === 1, 'the second try', 3_000);
});
