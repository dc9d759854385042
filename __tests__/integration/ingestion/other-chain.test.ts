import { endOfLedger } from '../../../src/ingestion/chain-position';
import type { EventPropagator } from '../../../src/ingestion/event-propagator';
import { IngestionStateRepository } from '../../../src/ingestion/ingestion-state.repository';
import { startSimnet, type Simnet } from '../../../src/simnet';
import { EventsClient } from '../../../src/stellar/events-client';
import { RpcPool } from '../../../src/stellar/rpc/rpc-pool';
import { SorobanRpc } from '../../../src/stellar/rpc/soroban-rpc';
import { decodeContractValue } from '../../../src/stellar/scval-codec';
import { captureLogger } from '../../support/capture-logger';
import { openTestDatabase, type TestDatabase } from '../../support/database';
import { CONTRACT_A, makeEvents, ScriptedChain } from '../../support/ingestion-chain';
import { queueDirectory, recordingHandler, until } from '../../support/ingestion-fixture';
import { makePropagator, type PropagatorParts } from '../../support/ingestion-propagator';

const directory = queueDirectory();
const running: EventPropagator[] = [];
const networks: Simnet[] = [];
const T = 1_784_671_886;
let database: TestDatabase;

function start(parts: PropagatorParts): EventPropagator {
  const propagator = makePropagator(parts);
  running.push(propagator);
  propagator.start();
  return propagator;
}
const ended = (propagator: EventPropagator, kind: string) =>
  until(() => propagator.health().lastRound?.kind === kind, kind);
const stop = (propagator: EventPropagator): Promise<void> => {
  running.splice(running.indexOf(propagator), 1);
  return propagator.stop();
};

beforeAll(async () => {
  database = await openTestDatabase();
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((propagator) => propagator.stop(100)));
  await Promise.all(networks.splice(0).map((net) => net.stop()));
});
afterAll(async () => {
  await database.close();
  directory.remove();
});

/** A chain at `latest` that closed its newest ledger `afterS` seconds after the one that the tests begin with. */
const chainAt = (latest: number, afterS: number): ScriptedChain => {
  const chain = new ScriptedChain(makeEvents(50, { firstLedger: 1, perLedger: 1 }), latest);
  chain.latestCloseTime = T + afterS;
  return chain;
};

/** Reads a chain to ledger 900 and stops. */
async function readOld(queuePath: string, parts: Partial<PropagatorParts> = {}): Promise<void> {
  const propagator = start({ source: chainAt(900, 0), startLedger: 890, queuePath, ...parts });
  await ended(propagator, 'caught_up');
  await stop(propagator);
}

it('a chain that counts anew is not read, and health says what to do, once in the log', async () => {
  const queuePath = directory.file('anew.db');
  await readOld(queuePath);
  const { logger, lines } = captureLogger();
  const { handler, handled } = recordingHandler();
  const chain = chainAt(40, 300);
  const propagator = start({ source: chain, queuePath, handlers: [handler], logger });
  await ended(propagator, 'other_chain');
  const rounds = chain.queries.length;
  await until(() => chain.queries.length > rounds + 2, 'further rounds');
  const { healthy, problems, otherChain, lagLedgers } = propagator.health();
  expect(healthy).toBe(false);
  expect(problems).toEqual([expect.stringMatching(/began anew: its ledger 40 closed at .*EVENT_QUEUE_PATH/)]);
  expect(otherChain).toEqual({
    seen: { ledger: 900, closedAt: new Date(T * 1000).toISOString() },
    found: { ledger: 40, closedAt: new Date((T + 300) * 1000).toISOString() },
  });
  expect(lagLedgers).toBeNull();
  expect(lines().filter(({ level }) => level === 'error')).toHaveLength(1);
  expect(propagator.getQueueStats().total).toBe(0);
  expect(handled).toEqual([]);
  expect(propagator.queue.store.positions().get(CONTRACT_A)).toEqual({ cursor: endOfLedger(900) });
});

it('a server that lags has an earlier close time, and is waited for', async () => {
  const queuePath = directory.file('lag.db');
  await readOld(queuePath);
  const chain = chainAt(880, -100);
  const propagator = start({ source: chain, queuePath });
  await ended(propagator, 'lagging');
  expect(propagator.health()).toMatchObject({ healthy: true, otherChain: null, lagLedgers: null });
  Object.assign(chain, { latest: 901, latestCloseTime: T + 5 });
  await ended(propagator, 'caught_up');
  expect(propagator.health()).toMatchObject({ healthy: true, lagLedgers: 0 });
});

it('the same number with another close time is another chain', async () => {
  const queuePath = directory.file('equal.db');
  await readOld(queuePath);
  await ended(start({ source: chainAt(900, 3_600), queuePath }), 'other_chain');
});

it('a chain that has overtaken the old one while nobody looked is found out', async () => {
  const queuePath = directory.file('overtaken.db');
  await readOld(queuePath);
  const propagator = start({ source: chainAt(1_000, 3_600), queuePath });
  await ended(propagator, 'other_chain');
  expect(propagator.health().problems.join()).toContain('its ledger 900 closed at');
});

it.each([
  ['went on', chainAt(1_000, 500)],
  ['no longer knows when our newest ledger closed', Object.assign(chainAt(1_000, 3_600), { oldest: 901 })],
])('a chain that %s while nobody looked is read on', async (_what, source) => {
  const queuePath = directory.file(`on-${source.oldest}.db`);
  await readOld(queuePath);
  await ended(start({ source, queuePath }), 'caught_up');
});

it('an operator who names a cursor is believed', async () => {
  const queuePath = directory.file('override.db');
  await readOld(queuePath);
  const propagator = start({ source: chainAt(40, 300), queuePath, cursorOverride: endOfLedger(10) });
  await ended(propagator, 'caught_up');
  expect(propagator.getQueueStats().total).toBe(30);
});

it('what one ingester saw of the network, the next one knows', async () => {
  const state = new IngestionStateRepository(database.connection, 'other-chain');
  await readOld(directory.file('first.db'), { state });
  const propagator = start({ source: chainAt(40, 300), queuePath: directory.file('second.db'), state });
  await ended(propagator, 'other_chain');
});

it('a simulated network that was started again under an old file is found out', async () => {
  const queuePath = directory.file('simulated.db');
  const on = async (
    firstLedger: number,
    { laterMs = 0, ledgers = 0 } = {},
  ): Promise<[EventPropagator, Simnet]> => {
    const clock = { now: () => Date.now() + laterMs };
    const net = await startSimnet({ ledgerMs: 20, firstLedger }, { clock });
    networks.push(net);
    net.closeLedgers(ledgers);
    const rpcPool = new RpcPool({
      urls: net.rpcUrls,
      networkPassphrase: net.networkPassphrase,
      timeoutMs: 2_000,
      failureThreshold: 3,
      cooldownMs: 1_000,
      maxLagLedgers: 5,
    });
    const propagator = start({
      source: new EventsClient(new SorobanRpc(rpcPool)),
      decode: decodeContractValue,
      contractIds: [net.contracts.oracle],
      startLedger: undefined,
      queuePath,
    });
    return [propagator, net];
  };
  const [before] = await on(5_000);
  await ended(before, 'caught_up');
  await stop(before);
  const [after, restarted] = await on(1_000, { laterMs: 60_000 });
  await ended(after, 'other_chain');
  expect(after.health().problems.join()).toContain('began anew');
  await stop(after);
  await restarted.stop();
  const [later] = await on(4_500, { laterMs: 60_000, ledgers: 1_500 });
  await ended(later, 'other_chain');
  const { otherChain } = later.health();
  expect(otherChain?.found.ledger).toBe(otherChain?.seen.ledger);
});
