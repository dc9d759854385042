import { endOfLedger } from '../../../src/ingestion/chain-position';
import type { EventPropagator } from '../../../src/ingestion/event-propagator';
import { IngestionStateRepository } from '../../../src/ingestion/ingestion-state.repository';
import type { WorkerId } from '../../../src/platform/ids';
import { openTestDatabase, type TestDatabase } from '../../support/database';
import { CONTRACT_A, makeEvent, makeEvents, ScriptedChain } from '../../support/ingestion-chain';
import { queueDirectory, recordingHandler, until } from '../../support/ingestion-fixture';
import { makePropagator, type PropagatorParts } from '../../support/ingestion-propagator';

const directory = queueDirectory();
const running: EventPropagator[] = [];
let database: TestDatabase;
let streams = 0;

const newState = (): IngestionStateRepository =>
  new IngestionStateRepository(database.connection, `stream-${(streams += 1)}`);
const holder = (name: string): WorkerId => name as WorkerId;

function start(name: string, parts: PropagatorParts): EventPropagator {
  const propagator = makePropagator({
    queuePath: directory.file(`${streams}-${name}.db`),
    workerId: holder(`elsewhere:1:${name}`),
    ...parts,
    tuning: { leaderLeaseMs: 300, ...parts.tuning },
  });
  running.push(propagator);
  propagator.start();
  return propagator;
}
const leads = (propagator: EventPropagator) =>
  until(() => propagator.health().role === 'leading', 'the lead');

beforeAll(async () => {
  database = await openTestDatabase();
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((propagator) => propagator.stop(100)));
});
afterAll(async () => {
  await database.close();
  directory.remove();
});

describe('the shared state', () => {
  const [a, b] = [holder('host:1:a'), holder('host:1:b')];

  it('gives the lead to one, and to the next once it has run out by the database clock', async () => {
    const state = newState();
    const held = await Promise.all([state.hold(a, 60_000), state.hold(b, 60_000)]);
    expect(held.map(({ kind }) => kind).sort()).toEqual(['following', 'leading']);
    const [leader, other] = held[0].kind === 'leading' ? [a, b] : [b, a];
    expect(await state.hold(leader, 1)).toMatchObject({ kind: 'leading', epoch: 1 });
    let taken = await state.hold(other, 60_000);
    await until(
      async () => (taken = await state.hold(other, 60_000)).kind === 'leading',
      'the lease to run out',
    );
    expect(taken).toMatchObject({ kind: 'leading', epoch: 2 });
    expect(await state.hold(leader, 60_000)).toEqual({ kind: 'following', leader: other });
  });

  const progress = (ledger: number) => ({
    marks: new Map([[CONTRACT_A, endOfLedger(ledger)]]),
    followed: [],
    dropped: [],
    gaps: [],
    tip: null,
  });

  it('refuses the checkpoint of an old epoch, and never moves one back', async () => {
    const state = newState();
    await state.hold(a, 60_000);
    expect(await state.checkpoint(a, 1, progress(200))).toBe(true);
    expect(await state.checkpoint(a, 1, progress(150))).toBe(true);
    await state.release(a);
    const next = await state.hold(b, 60_000);
    expect(next).toMatchObject({ kind: 'leading', epoch: 2 });
    expect(next.kind === 'leading' && next.checkpoints.get(CONTRACT_A)).toBe(endOfLedger(200));
    expect(await state.checkpoint(a, 1, progress(300))).toBe(false);
    expect((await state.read()).checkpoints.get(CONTRACT_A)).toBe(endOfLedger(200));
  });
});

it('one of two reads; when it stops, the other goes on where it stood and repeats nothing', async () => {
  const chain = new ScriptedChain(makeEvents(50), 104);
  const state = newState();
  const [a, b] = [recordingHandler(), recordingHandler()];
  const first = start('a', { source: chain, state, handlers: [a.handler] });
  await leads(first);
  const second = start('b', { source: chain, state, handlers: [b.handler] });
  await until(() => a.handled.length === 50 && second.health().role === 'following', 'one of each');
  await until(
    async () => (await state.read()).checkpoints.get(CONTRACT_A) === endOfLedger(104),
    'the checkpoint',
  );
  running.splice(running.indexOf(first), 1);
  await first.stop();
  chain.add(...makeEvents(20, { firstLedger: 105 }));
  await until(() => b.handled.length === 20, 'the other to take over');
  expect(new Set([...a.handled, ...b.handled]).size).toBe(70);
});

it('what the old leader had read but not handled is read again by the next', async () => {
  const events = makeEvents(50);
  const chain = new ScriptedChain(events, 104);
  const state = newState();
  const stuck = events[23]!.id;
  const a = recordingHandler({}, (batch) =>
    batch[0]!.id === stuck ? new Promise<void>(() => undefined) : undefined,
  );
  const b = recordingHandler();
  const first = start('a', { source: chain, state, handlers: [a.handler] });
  await until(() => a.handled.length === 49, 'all but the stuck one');
  await until(
    async () => (await state.read()).checkpoints.get(CONTRACT_A) === endOfLedger(101),
    'the checkpoint',
  );

  // Cut off from the database, a leader stops leading by itself and gives nothing up.
  const hold = jest.spyOn(state, 'hold').mockImplementation(function (
    this: IngestionStateRepository,
    who,
    ttlMs,
  ) {
    return who.endsWith(':a')
      ? Promise.reject(new Error('cut off'))
      : IngestionStateRepository.prototype.hold.call(this, who, ttlMs);
  });
  const second = start('b', { source: chain, state, handlers: [b.handler] });
  await leads(second);
  await until(() => first.health().role === 'following', 'the old leader to see it');
  await until(() => b.handled.includes(stuck), 'the stuck event');
  await until(() => b.handled.length === 30, 'everything behind the mark');
  expect(new Set([...a.handled, ...b.handled])).toEqual(new Set(events.map(({ id }) => id)));
  hold.mockRestore();
});

it('an old leader that comes back skips what others have handled meanwhile', async () => {
  const chain = new ScriptedChain(makeEvents(30), 102);
  const state = newState();
  const [a, b, c] = [recordingHandler(), recordingHandler(), recordingHandler()];
  const stop = async (propagator: EventPropagator): Promise<void> => {
    running.splice(running.indexOf(propagator), 1);
    await propagator.stop();
  };
  const first = start('a', { source: chain, state, handlers: [a.handler] });
  await until(() => a.handled.length === 30, 'the first part');
  await stop(first);
  chain.add(...makeEvents(30, { firstLedger: 103 }));
  const second = start('b', { source: chain, state, handlers: [b.handler] });
  await until(() => b.handled.length === 30, 'the second part');
  await stop(second);
  chain.add(makeEvent({ ledger: 106 }));
  start('a', { source: chain, state, handlers: [c.handler] });
  await until(() => c.handled.length === 1, 'the third part');
  expect(c.handled).toEqual([makeEvent({ ledger: 106 }).id]);
});

it('a lost queue file costs nothing: the next one starts from the shared mark', async () => {
  const chain = new ScriptedChain(makeEvents(30), 102);
  const state = newState();
  const { handler, handled } = recordingHandler();
  const first = start('a', { source: chain, state, startLedger: undefined, handlers: [handler] });
  await until(() => handled.length === 10, 'the newest ledger');
  running.splice(running.indexOf(first), 1);
  await first.stop();
  chain.add(...makeEvents(20, { firstLedger: 103 }));
  start('a2', { source: chain, state, startLedger: undefined, handlers: [handler] });
  await until(() => handled.length === 30, 'all since');
});

it('gaps are shared, so that any ingester can show them', async () => {
  const chain = new ScriptedChain(makeEvents(30), 120, 102);
  const state = newState();
  start('a', { source: chain, state });
  await until(async () => (await state.read()).gaps.length > 0, 'the gap');
  expect((await state.read()).gaps).toMatchObject([
    { contractId: CONTRACT_A, fromLedger: 100, toLedger: 101 },
  ]);
});
