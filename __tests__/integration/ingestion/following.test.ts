import { endOfLedger } from '../../../src/ingestion/chain-position';
import type { EventPropagator } from '../../../src/ingestion/event-propagator';
import { IngestionStateRepository } from '../../../src/ingestion/ingestion-state.repository';
import type { WorkerId } from '../../../src/platform/ids';
import { openTestDatabase, type TestDatabase } from '../../support/database';
import { CONTRACT_A, CONTRACT_B, makeEvent, ScriptedChain } from '../../support/ingestion-chain';
import { queueDirectory, recordingHandler, until } from '../../support/ingestion-fixture';
import { makePropagator, type PropagatorParts } from '../../support/ingestion-propagator';

const FACTORY = CONTRACT_A;
const INSTANCE = CONTRACT_B;
const directory = queueDirectory();
const running: EventPropagator[] = [];
let database: TestDatabase;

function start(name: string, parts: PropagatorParts): EventPropagator {
  const propagator = makePropagator({
    contractIds: [FACTORY],
    queuePath: directory.file(`${name}.db`),
    workerId: `elsewhere:1:${name}` as WorkerId,
    ...parts,
    tuning: { leaderLeaseMs: 300, ...parts.tuning },
  });
  running.push(propagator);
  propagator.start();
  return propagator;
}
async function stop(propagator: EventPropagator): Promise<void> {
  running.splice(running.indexOf(propagator), 1);
  await propagator.stop(100);
}

/** Follows what the factory makes, lets go of what is over. */
const keeper = () => {
  const { handler, handled } = recordingHandler({
    name: 'keeper',
    topics: ['created', 'over'],
    handle: (events, { following }) => {
      for (const { contractId, ledger, raw } of events) {
        if (contractId === FACTORY) following.follow(INSTANCE, ledger);
        else following.unfollow(raw.contractId);
        handled.push(raw.id);
      }
      return Promise.resolve(undefined);
    },
  });
  return { handler, handled };
};
const created = makeEvent({ ledger: 120, topics: ['created'] });
const requested = makeEvent({ ledger: 121, contractId: INSTANCE, topics: ['requested'] });
const tooEarly = makeEvent({ ledger: 110, contractId: INSTANCE, topics: ['requested'] });
const over = makeEvent({ ledger: 130, contractId: INSTANCE, topics: ['over'] });
const afterwards = makeEvent({ ledger: 140, contractId: INSTANCE, topics: ['requested'] });

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

it('a contract that an event tells of is read from where it was made, until it is let go', async () => {
  const chain = new ScriptedChain([tooEarly, created, requested], 125);
  const seen = recordingHandler({ topics: ['requested'] });
  const propagator = start('one', { source: chain, handlers: [keeper().handler, seen.handler] });
  await until(() => seen.handled.length === 1, 'the request');
  expect(seen.handled).toEqual([requested.id]);
  chain.add(over);
  await until(() => propagator.queue.followed.list().length === 0, 'its end');
  chain.add(afterwards);
  chain.latest = 145;
  await until(() => propagator.queue.store.positions().get(FACTORY)?.cursor === endOfLedger(145), 'the tip');
  expect(seen.handled).toEqual([requested.id]);
  expect(propagator.queue.store.positions().has(INSTANCE)).toBe(false);
  expect(propagator.queue.store.gaps()).toEqual([]);
});

it('what is followed is followed after a restart as well, from where it was read to', async () => {
  const chain = new ScriptedChain([created, requested], 125);
  const before = start('restart', { source: chain, handlers: [keeper().handler] });
  await until(() => before.queue.store.positions().get(INSTANCE)?.cursor === endOfLedger(125), 'the tip');
  await stop(before);
  chain.add(makeEvent({ ledger: 126, contractId: INSTANCE, topics: ['requested'] }));
  const seen = recordingHandler({ topics: ['requested'] });
  start('restart', { source: chain, handlers: [keeper().handler, seen.handler] });
  await until(() => seen.handled.length === 1, 'what came meanwhile');
});

it('the next leader follows what the last one followed, without the event that told of it', async () => {
  const state = new IngestionStateRepository(database.connection, 'following');
  const chain = new ScriptedChain([created, requested], 125);
  const first = start('first', { source: chain, state, handlers: [keeper().handler] });
  await until(
    async () => (await state.read()).checkpoints.get(INSTANCE) === endOfLedger(125),
    'the shared mark',
  );
  await stop(first);
  chain.add(makeEvent({ ledger: 126, contractId: INSTANCE, topics: ['requested'] }));
  const keeps = keeper();
  const seen = recordingHandler({ topics: ['requested'] });
  const second = start('second', { source: chain, state, handlers: [keeps.handler, seen.handler] });
  await until(() => seen.handled.length === 1, 'the request');
  expect(keeps.handled).toEqual([]);
  chain.add(over);
  await until(async () => !(await state.read()).checkpoints.has(INSTANCE), 'the mark to go');
  expect(second.queue.followed.list()).toEqual([]);
});

it('nothing is followed that servers would refuse', () => {
  const propagator = makePropagator({
    source: new ScriptedChain([], 100),
    queuePath: directory.file('no.db'),
  });
  running.push(propagator);
  expect(() => propagator.follow('CNOTACONTRACT', 5)).toThrow(RangeError);
  expect(() => propagator.follow(INSTANCE, 0)).toThrow(RangeError);
  propagator.follow(INSTANCE, 5);
  propagator.follow(INSTANCE, 9);
  expect(propagator.queue.store.positions().get(INSTANCE)).toEqual({ startLedger: 5 });
  propagator.follow(FACTORY, 7);
  propagator.unfollow(FACTORY);
  expect(propagator.queue.store.positions().get(FACTORY)).toEqual({ startLedger: 7 });
});
