import { mongo } from 'mongoose';
import { PermanentError } from '../../../src/platform/errors';
import type { EventOutcome } from '../../../src/ingestion/event-handler';
import type { EventPropagator } from '../../../src/ingestion/event-propagator';
import { CONTRACT_A, CONTRACT_B, makeEvent, makeEvents, ScriptedChain } from '../../support/ingestion-chain';
import { queueDirectory, recordingHandler, until } from '../../support/ingestion-fixture';
import { makePropagator, type PropagatorParts } from '../../support/ingestion-propagator';

const directory = queueDirectory();
const running: EventPropagator[] = [];
let files = 0;

function start(parts: PropagatorParts): EventPropagator {
  const propagator = makePropagator({ queuePath: directory.file(`handlers${(files += 1)}.db`), ...parts });
  running.push(propagator);
  propagator.start();
  return propagator;
}

afterEach(async () => {
  await Promise.all(running.splice(0).map((propagator) => propagator.stop(200)));
});
afterAll(() => directory.remove());

it('a failing handler neither blocks nor replays the others', async () => {
  const chain = new ScriptedChain(makeEvents(50), 104);
  const good = recordingHandler({ name: 'good' });
  const bad = recordingHandler({ name: 'bad' }, () => Promise.reject(new Error('always')));
  const propagator = start({ source: chain, handlers: [good.handler, bad.handler] });
  await until(() => propagator.getQueueStats().failed === 50, 'dead letters');
  expect(good.handled).toHaveLength(50);
  expect(bad.calls).toHaveLength(150);
  expect(propagator.health().handlers).toEqual([
    { handler: 'bad', ready: 0, waiting: 0, leased: 0, dead: 50 },
  ]);
});

it('what can never succeed is given up at once, what may is tried as often as allowed', async () => {
  const chain = new ScriptedChain(makeEvents(1), 100);
  const never = recordingHandler({ name: 'never' }, () => Promise.reject(new PermanentError('BAD', 'never')));
  const twice = recordingHandler(
    { name: 'twice', retry: { maxAttempts: 2, baseDelayMs: 1, maxDelayMs: 1 } },
    () => Promise.reject(new Error('maybe')),
  );
  const propagator = start({ source: chain, handlers: [never.handler, twice.handler] });
  await until(() => propagator.queue.deadLetters.count({}) === 2, 'both dead letters');
  expect(never.calls).toHaveLength(1);
  expect(twice.calls).toHaveLength(2);
  const letters = propagator.queue.deadLetters.list({}, { limit: 10 });
  expect(letters.map(({ handler, code, attempts }) => [handler, code, attempts])).toEqual([
    ['never', 'BAD', 1],
    ['twice', 'UNEXPECTED_ERROR', 2],
  ]);
});

it('a replay reaches the handler that gave up, and only that one', async () => {
  const chain = new ScriptedChain(makeEvents(3), 100);
  let broken = true;
  const good = recordingHandler({ name: 'good' });
  const mended = recordingHandler({ name: 'mended' }, () =>
    broken ? Promise.reject(new PermanentError('BROKEN', 'not yet')) : undefined,
  );
  const propagator = start({ source: chain, handlers: [good.handler, mended.handler] });
  await until(() => propagator.getQueueStats().failed === 3, 'dead letters');
  broken = false;
  expect(
    propagator.queue.deadLetters.replay({ handler: 'mended' }, { operator: 'ada', reason: 'fixed' }),
  ).toBe(3);
  await until(() => propagator.getQueueStats().processed === 3, 'the replay');
  expect(mended.handled).toHaveLength(3);
  expect(good.calls).toHaveLength(3);
});

it('order per contract holds through retries, while contracts do not wait for each other', async () => {
  const events = makeEvents(60, { contracts: [CONTRACT_A, CONTRACT_B] });
  const chain = new ScriptedChain(events, 105);
  const stuck = events[4]!.id;
  let release = false;
  const { handler, handled } = recordingHandler(
    { ordered: true, batch: 5, retry: { maxAttempts: 1_000, baseDelayMs: 1, maxDelayMs: 2 } },
    (batch) =>
      batch.some(({ id }) => id === stuck) && !release ? Promise.reject(new Error('not yet')) : undefined,
  );
  start({ source: chain, contractIds: [CONTRACT_A, CONTRACT_B], handlers: [handler] });
  const of = (contractId: string) =>
    events.filter((event) => event.contractId === contractId).map(({ id }) => id);
  await until(
    () => handled.filter((id) => of(CONTRACT_B).includes(id)).length === 30,
    'all of the other contract',
  );
  expect(handled.filter((id) => of(CONTRACT_A).includes(id))).toEqual(of(CONTRACT_A).slice(0, 2));
  release = true;
  await until(() => handled.length === 60, 'the rest');
  for (const contractId of [CONTRACT_A, CONTRACT_B]) {
    expect(handled.filter((id) => of(contractId).includes(id))).toEqual(of(contractId));
  }
});

it('a dead letter lets the line go on', async () => {
  const events = makeEvents(10);
  const chain = new ScriptedChain(events, 100);
  const { handler, handled } = recordingHandler({ ordered: true }, ([event]) =>
    event!.id === events[3]!.id ? Promise.reject(new PermanentError('BAD', 'never')) : undefined,
  );
  start({ source: chain, handlers: [handler] });
  await until(() => handled.length === 9, 'the other nine');
  expect(handled).toEqual(events.filter((_, n) => n !== 3).map(({ id }) => id));
});

it('batches are as large as asked for, and one poison event costs its companions one retry, not their lives', async () => {
  const events = makeEvents(40);
  const chain = new ScriptedChain(events, 103);
  const poison = events[5]!.id;
  const { handler, handled, calls } = recordingHandler({ batch: 20, concurrency: 1 }, (batch) =>
    batch.some(({ id }) => id === poison) ? Promise.reject(new PermanentError('POISON', 'no')) : undefined,
  );
  const propagator = start({ source: chain, handlers: [handler] });
  await until(() => handled.length === 39, 'all others');
  await until(() => propagator.getQueueStats().failed === 1, 'the dead letter');
  expect(Math.max(...calls.map(({ length }) => length))).toBe(20);
  expect(calls.filter((ids) => ids.includes(poison)).map(({ length }) => length)).toEqual([20, 1]);
});

it('a batch may tell of each event how it went', async () => {
  const events = makeEvents(4);
  const chain = new ScriptedChain(events, 100);
  const seen = new Map<string, number>();
  const { handler } = recordingHandler({
    batch: 10,
    handle: (batch) => {
      const outcomes = new Map<string, EventOutcome>();
      for (const { id } of batch) seen.set(id, (seen.get(id) ?? 0) + 1);
      const failure = { code: 'NO', message: 'no', kind: 'permanent', retryable: false } as const;
      if (batch.length > 1) {
        outcomes.set(events[1]!.id, { kind: 'failed', failure });
        outcomes.set(events[2]!.id, { kind: 'postponed', delayMs: 1, reason: 'too early' });
      }
      return Promise.resolve(outcomes);
    },
  });
  const propagator = start({ source: chain, handlers: [handler] });
  await until(() => propagator.getQueueStats().processed === 3, 'the end');
  expect(propagator.getQueueStats()).toMatchObject({ processed: 3, failed: 1 });
  expect(events.map(({ id }) => seen.get(id))).toEqual([1, 1, 2, 1]);
});

it('a postponed event is kept through more rounds than it has tries', async () => {
  const chain = new ScriptedChain(makeEvents(1), 100);
  let rounds = 0;
  const { handler } = recordingHandler({
    handle: ([event], { attempt }) => {
      expect(attempt).toBe(1);
      rounds += 1;
      if (rounds > 20) return Promise.resolve(undefined);
      return Promise.resolve(new Map([[event!.id, { kind: 'postponed', delayMs: 1, reason: 'too early' }]]));
    },
  });
  const propagator = start({ source: chain, handlers: [handler] });
  await until(() => propagator.getQueueStats().processed === 1, 'the 21st round');
});

it('events go to whom they concern: by decoded topic in any spelling, and by contract', async () => {
  const events = [
    makeEvent({ ledger: 100, transaction: 1, topics: ['certificate_minted'] }),
    makeEvent({ ledger: 100, transaction: 2, topics: ['CertificateMinted'], contractId: CONTRACT_B }),
    makeEvent({ ledger: 100, transaction: 3, topics: ['tikka', 'draw_triggered'] }),
    makeEvent({ ledger: 100, transaction: 4, topics: ['certificate_minted_not'] }),
  ];
  const chain = new ScriptedChain(events, 100);
  const minted = recordingHandler({ name: 'minted', topics: ['certificateminted'] });
  const onlyA = recordingHandler({ name: 'only-a', topics: ['certificate_minted'], contracts: [CONTRACT_A] });
  const draws = recordingHandler({ name: 'draws', topics: ['*/draw_triggered', 'draw_triggered'] });
  const handlers = [minted.handler, onlyA.handler, draws.handler];
  const propagator = start({ source: chain, contractIds: [CONTRACT_A, CONTRACT_B], handlers });
  await until(() => propagator.getQueueStats().processed === 4, 'all events');
  expect(minted.handled.sort()).toEqual([events[0]!.id, events[1]!.id]);
  expect(onlyA.handled).toEqual([events[0]!.id]);
  expect(draws.handled).toEqual([events[2]!.id]);
});

it('concurrency is kept to, and a low priority still gets its turn behind a busy high one', async () => {
  const chain = new ScriptedChain(makeEvents(30), 102);
  let running = 0;
  let most = 0;
  let open: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => (open = resolve));
  const busy = recordingHandler({ name: 'busy', priority: 'high', concurrency: 8 }, async () => {
    most = Math.max(most, (running += 1));
    await gate;
    running -= 1;
  });
  const low = recordingHandler({ name: 'low', priority: 'low', concurrency: 8 });
  start({ source: chain, handlers: [low.handler, busy.handler], tuning: { maxCalls: 4 } });
  await until(() => low.handled.length === 30, 'the low one');
  expect(most).toBe(4);
  open();
  await until(() => busy.handled.length === 30, 'the high one');
});

it('a call that hangs is aborted, counts as a try, and does not keep its slot', async () => {
  const chain = new ScriptedChain(makeEvents(1), 100);
  let aborted = 0;
  const { handler } = recordingHandler({
    concurrency: 1,
    handle: (_, { signal }) => {
      signal.addEventListener('abort', () => (aborted += 1));
      return new Promise(() => undefined);
    },
  });
  const propagator = start({ source: chain, handlers: [handler], tuning: { handlerTimeoutMs: 20 } });
  await until(() => propagator.getQueueStats().failed === 1, 'the dead letter');
  expect(aborted).toBe(3);
  expect(propagator.queue.deadLetters.list({}, { limit: 1 })[0]).toMatchObject({
    code: 'HANDLER_TIMEOUT',
    attempts: 3,
  });
});

it('a slow call keeps its lease for as long as it runs', async () => {
  const chain = new ScriptedChain(makeEvents(1), 100);
  const { handler, calls } = recordingHandler({}, () => new Promise((resolve) => setTimeout(resolve, 250)));
  const propagator = start({ source: chain, handlers: [handler], tuning: { deliveryLeaseMs: 60 } });
  await until(() => propagator.getQueueStats().processed === 1, 'the end of the call');
  expect(calls).toHaveLength(1);
});

it('stopping lets a running call finish, and gives back at no cost what does not', async () => {
  const events = makeEvents(2);
  const chain = new ScriptedChain(events, 100);
  const queuePath = directory.file('stopping.db');
  const attempts: number[] = [];
  let finish: () => void = () => undefined;
  const { handler, handled } = recordingHandler({ concurrency: 2 }, ([event], attempt) => {
    attempts.push(attempt);
    return event!.id === events[0]!.id
      ? new Promise<void>((resolve) => (finish = resolve))
      : new Promise<void>(() => undefined);
  });
  const propagator = makePropagator({ source: chain, queuePath, handlers: [handler] });
  propagator.start();
  await until(() => attempts.length === 2, 'both calls');
  const stopped = propagator.stop(100);
  finish();
  await stopped;
  expect(handled).toEqual([events[0]!.id]);

  const next = recordingHandler({}, (_, attempt) => void attempts.push(attempt));
  start({ source: chain, queuePath, handlers: [next.handler] });
  await until(() => next.handled.length === 1, 'the one given back');
  expect(next.handled).toEqual([events[1]!.id]);
  expect(attempts).toEqual([1, 1, 1]);
});

it('recoverPendingEvents delivers what an earlier process left, before anything is read', async () => {
  const queuePath = directory.file('recover.db');
  const chain = new ScriptedChain(makeEvents(20), 101);
  const first = makePropagator({ source: chain, queuePath });
  first.queue.enqueueBatch({ events: makeEvents(20), contractIds: [], position: null });
  await first.stop();

  const seen: string[] = [];
  const second = makePropagator({ source: new ScriptedChain([], 101), queuePath });
  second.onEvent((event) => Promise.resolve(void seen.push(event.id)));
  await second.recoverPendingEvents();
  expect(seen).toEqual(makeEvents(20).map(({ id }) => id));
  expect(second.getQueueStats()).toMatchObject({ pending: 0, processed: 20 });
  await second.stop();
});

it('an outage of the database costs an event none of its tries', async () => {
  const chain = new ScriptedChain(makeEvents(1), 100);
  const noServer = new mongo.MongoServerSelectionError('no server', { servers: new Map() } as never);
  const cutOff = recordingHandler(
    { name: 'cut-off', retry: { maxAttempts: 1, baseDelayMs: 1, maxDelayMs: 1 } },
    () => Promise.reject(noServer),
  );
  const propagator = start({ source: chain, handlers: [cutOff.handler] });
  await until(() => propagator.queue.deliveries.backlog()[0]?.waiting === 1, 'the event to be put off');
  expect(cutOff.calls).toHaveLength(1);
  expect(propagator.queue.deadLetters.count({})).toBe(0);
});

it('two processes on one file share the work, and no event is handled by both', async () => {
  const chain = new ScriptedChain(makeEvents(400), 139);
  const queuePath = directory.file('shared.db');
  const [a, b] = [recordingHandler(), recordingHandler()];
  const slow = recordingHandler({}, () => new Promise((resolve) => setTimeout(resolve, 1)));
  start({ source: chain, queuePath, handlers: [a.handler], tuning: { pageLimit: 30 } });
  start({ source: chain, queuePath, handlers: [b.handler], tuning: { pageLimit: 30 } });
  start({ source: chain, queuePath, handlers: [slow.handler], tuning: { pageLimit: 30 } });
  const all = () => [...a.handled, ...b.handled, ...slow.handled];
  await until(() => all().length >= 400, 'all events');
  expect(new Set(all()).size).toBe(400);
  expect(all()).toHaveLength(400);
});
