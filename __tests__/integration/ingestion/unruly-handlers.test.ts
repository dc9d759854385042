import type { EventHandlerDefinition, EventOutcome } from '../../../src/ingestion/event-handler';
import type { EventPropagator } from '../../../src/ingestion/event-propagator';
import { makeEvents, ScriptedChain } from '../../support/ingestion-chain';
import { queueDirectory, recordingHandler, until } from '../../support/ingestion-fixture';
import { makePropagator, type PropagatorParts } from '../../support/ingestion-propagator';

const directory = queueDirectory();
const running: EventPropagator[] = [];
let files = 0;

function start(parts: PropagatorParts): EventPropagator {
  const propagator = makePropagator({ queuePath: directory.file(`unruly${(files += 1)}.db`), ...parts });
  running.push(propagator);
  propagator.start();
  return propagator;
}

afterEach(async () => {
  await Promise.all(running.splice(0).map((propagator) => propagator.stop(200)));
});
afterAll(() => directory.remove());

const once = { maxAttempts: 1, baseDelayMs: 1, maxDelayMs: 1 };
type Handle = EventHandlerDefinition['handle'];
const hostile = (value: unknown): Handle => {
  // Handlers in files of their own are often plain JavaScript: nothing has checked what they throw or return.
  return (() => value) as Handle;
};
const throwing =
  (value: unknown): Handle =>
  () => {
    throw value;
  };

it.each<[string, Handle]>([
  ['throws undefined', throwing(undefined)],
  ['throws null before its first await', throwing(null)],
  ['throws an object whose text can’t be had', throwing({ toString: null })],
  ['throws an error without a usable message', throwing(Object.assign(new Error(), { message: 7n }))],
  [
    'rejects with no error',
    async () => {
      await Promise.resolve();
      return throwing(Symbol('no'))([], {} as never);
    },
  ],
  ['answers with a list instead of a map', hostile(Promise.resolve([{ kind: 'handled' }]))],
  [
    'answers with a kind that there is none of',
    (events) =>
      Promise.resolve(new Map(events.map(({ id }) => [id, { kind: 'done' } as unknown as EventOutcome]))),
  ],
  [
    'postpones to no time',
    (events) =>
      Promise.resolve(
        new Map(events.map(({ id }) => [id, { kind: 'postponed', delayMs: Number.NaN, reason: 'later' }])),
      ),
  ],
  [
    'postpones without a reason',
    (events) =>
      Promise.resolve(
        new Map(
          events.map(({ id }) => [
            id,
            { kind: 'postponed', delayMs: 1, reason: {} } as unknown as EventOutcome,
          ]),
        ),
      ),
  ],
  [
    'fails without saying how',
    (events) =>
      Promise.resolve(
        new Map(
          events.map(({ id }) => [id, { kind: 'failed', failure: { code: 1 } } as unknown as EventOutcome]),
        ),
      ),
  ],
])('a handler that %s ends in dead letters, and nobody else notices', async (_, handle) => {
  const good = recordingHandler({ name: 'good' });
  const bad = recordingHandler({ name: 'bad', retry: once, handle });
  const chain = new ScriptedChain(makeEvents(3), 100);
  const propagator = start({ source: chain, handlers: [bad.handler, good.handler] });
  await until(() => propagator.queue.deadLetters.count({ handler: 'bad' }) === 3, 'dead letters');
  expect(propagator.queue.deadLetters.list({}, { limit: 1 })[0]!.message).not.toBe('');
  await until(() => good.handled.length === 3, 'the other handler');
  chain.add(...makeEvents(2, { firstLedger: 200 }));
  await until(() => good.handled.length === 5, 'what comes after');
});

it('a handler that throws long after it was aborted disturbs nothing', async () => {
  const late: (() => void)[] = [];
  const slow = recordingHandler({
    name: 'slow',
    retry: once,
    handle: () => new Promise((_, reject) => late.push(() => reject(new Error('too late')))),
  });
  const chain = new ScriptedChain(makeEvents(2), 100);
  const propagator = start({ source: chain, handlers: [slow.handler], tuning: { handlerTimeoutMs: 20 } });
  await until(() => propagator.getQueueStats().failed === 2, 'timeouts');
  late.forEach((reject) => reject());
  await new Promise((resolve) => setImmediate(resolve));
  expect(propagator.queue.deadLetters.list({}, { limit: 5 }).map(({ code }) => code)).toEqual([
    'HANDLER_TIMEOUT',
    'HANDLER_TIMEOUT',
  ]);
});

it('recovering beside a started loop leaves its leases alive', async () => {
  const propagator = makePropagator({
    source: new ScriptedChain(makeEvents(1), 100),
    queuePath: directory.file('beside.db'),
    handlers: [
      recordingHandler(
        { name: 'long', retry: once },
        () => new Promise((resolve) => setTimeout(resolve, 400)),
      ).handler,
    ],
    tuning: { deliveryLeaseMs: 90 },
  });
  running.push(propagator);
  propagator.start();
  await until(() => propagator.getQueueStats().processing === 1, 'the call to begin');
  await propagator.recoverPendingEvents();
  await until(() => propagator.getQueueStats().processed === 1, 'the call to end', 2_000);
  expect(propagator.queue.deliveries.backlog()).toEqual([]);
});

it('a process that stood still for longer than its leases counts no death', async () => {
  let nowMs = Date.now();
  const clock = { now: () => nowMs, monotonicMs: () => performance.now() + (nowMs - startMs) };
  const startMs = nowMs;
  let release: () => void = () => undefined;
  const held = recordingHandler({ name: 'held' }, () => new Promise<void>((resolve) => (release = resolve)));
  const propagator = start({
    source: new ScriptedChain(makeEvents(1), 100),
    clock,
    handlers: [held.handler],
    tuning: { deliveryLeaseMs: 60_000 },
  });
  await until(() => held.calls.length === 1, 'the call');
  nowMs += 3_600_000;
  await new Promise((resolve) => setTimeout(resolve, 50));
  release();
  await until(() => propagator.getQueueStats().processed === 1, 'the result');
  expect(held.calls).toHaveLength(1);
});
