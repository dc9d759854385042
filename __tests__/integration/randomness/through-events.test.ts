import { createHash } from 'node:crypto';
import { EventPropagator } from '../../../src/ingestion/event-propagator';
import { TransientError } from '../../../src/platform/errors';
import { toVal } from '../../../src/simnet/scval';
import { decodeContractValue } from '../../../src/stellar/scval-codec';
import type { TransactionSubmitter } from '../../../src/stellar/submission';
import { queueDirectory } from '../../support/ingestion-fixture';
import {
  openRandomnessNetwork,
  untilAll,
  type NetworkWorker,
  type RandomnessNetwork,
  type WorkerChild,
} from '../../support/randomness-network';
import { neverAborted } from '../../support/stellar-fixture';
import { until } from '../../support/worker-fixture';

// Generous: beside other suites on a busy machine, calls and ledgers take their time.
jest.setTimeout(60_000);

const directory = queueDirectory();
const ingesters: EventPropagator[] = [];
const oneSlot = {
  QUEUE_GLOBAL_CONCURRENCY: '1',
  QUEUE_MAX_CONCURRENCY: '4',
  QUEUE_HIGH_PRIORITY_RESERVED: '0',
  // Longer than this process may stand still on a busy machine: a slot that runs out is another's.
  QUEUE_LEASE_MS: '10000',
};
let network: RandomnessNetwork;
let doomed: WorkerChild;
beforeAll(async () => {
  network = await openRandomnessNetwork({ ledgerMs: 60 });
  // It takes seconds to start, and waits until it is wanted.
  doomed = network.spawnWorker({ randomness: { ...oneSlot, QUEUE_LEASE_MS: '1000' }, dieAt: 'sent' });
});
afterEach(() => Promise.all(ingesters.splice(0).map((ingester) => ingester.stop())));
afterAll(async () => {
  await network.close();
  directory.remove();
});

/** Reads the events of the worker's contracts and hands them to its pipeline, as an ingester does. */
function ingestFor({ pipeline, stellar }: NetworkWorker): EventPropagator {
  const { eventHandlers: handlers } = pipeline;
  const ingester = new EventPropagator({
    source: stellar.events,
    decode: decodeContractValue,
    contractIds: [...new Set(handlers.flatMap(({ contracts = [] }) => contracts))],
    startLedger: network.simnet.latestLedger,
    handlers,
    queuePath: directory.file(`${ingesters.length}-${network.simnet.latestLedger}.db`),
    tuning: { pollIntervalMs: 30, processIntervalMs: 30 },
  });
  ingesters.push(ingester);
  ingester.start();
  return ingester;
}
const deliveriesOf = (contract: string, requestId: string) =>
  network.simnet.observer
    .raffleDeliveries()
    .filter((delivery) => delivery.contractId === contract && delivery.requestId === requestId);

it('a raffle’s creation is committed to, its draw is served by the opening, and no request is lost', async () => {
  const { actions, contracts } = network.simnet;
  const worker = await network.openWorker({ randomness: { COMMIT_REVEAL_THRESHOLD_XLM: '1000' } });
  const { pipeline, pool } = worker;
  const ingester = ingestFor(worker);
  const prize = toVal.i128(2000n * 10_000_000n);
  const raffleId = (await actions.call(contracts.raffle, 'create_raffle', [prize])).returned.u32();
  const raffle = { contractId: contracts.raffle, contractRequestId: '', raffleId };
  let commitment: string | null = null;
  await until('a commitment', async () => {
    ({ commitment } = await pipeline.contract.view(raffle, neverAborted()));
    return commitment !== null;
  });

  // The request's first way into the queue fails: its event has to come again.
  const enqueue = jest.spyOn(pipeline.queue, 'enqueue');
  enqueue.mockRejectedValueOnce(new TransientError('DATABASE_UNREACHABLE', 'no primary'));
  const draw = [toVal.u32(raffleId), toVal.bool(false)];
  const requestId = String((await actions.call(contracts.raffle, 'trigger_draw', draw)).returned.u32());
  await until('the request is queued', () => enqueue.mock.calls.length >= 2);
  await until('all is handled', () => ingester.getQueueStats().pending === 0);
  expect(ingester.getQueueStats().failed).toBe(0);

  await pool.start();
  const [job] = await untilAll(pipeline, [requestId], 'confirmed');
  await pool.stop();
  const { method, proof, seed } = job!.randomness!;
  expect(method).toBe('COMMIT_REVEAL');
  expect(createHash('sha256').update(Buffer.from(proof, 'hex')).digest('hex')).toBe(commitment);
  expect(deliveriesOf(contracts.raffle, requestId)).toMatchObject([{ raffleId, seed, txHash: job!.txHash }]);
});

it('a raffle that is a contract names its oracle; its delivery ends a job whose confirmation got lost', async () => {
  const { actions, contracts } = network.simnet;
  let lost = 0;
  const worker = await network.openWorker(
    {
      randomness: {
        RAFFLE_CONTRACT_INTERFACE: 'provide_randomness',
        RAFFLE_CONTRACT_ID: contracts.raffleInstance,
        QUEUE_INITIAL_BACKOFF_MS: '60000',
        QUEUE_MAX_BACKOFF_MS: '60000',
      },
    },
    {
      // Sent, and never heard of again: nothing but the contract's own event can end it.
      wrap: (submitter) => ({
        prepare: (...args) => submitter.prepare(...args),
        send: (...args) => submitter.send(...args),
        confirm: () => {
          lost += 1;
          return Promise.reject(new TransientError('RPC_UNAVAILABLE', 'no endpoint answers'));
        },
      }),
    },
  );
  const { pipeline, pool } = worker;
  await pool.start();
  ingestFor(worker);
  const { requestId } = await actions.drawInstance(contracts.raffleInstance);
  const id = pipeline.service.identityOf(contracts.raffleInstance, String(requestId));
  await until('its job', async () => (await pipeline.rescue.find(id)) !== null);
  const [job] = await untilAll(pipeline, [id], 'confirmed');
  await pool.stop();
  expect(lost).toBeGreaterThan(0);
  const [delivery, ...others] = deliveriesOf(contracts.raffleInstance, String(requestId));
  expect(others).toEqual([]);
  expect(job).toMatchObject({ phase: 'done', txHash: delivery!.txHash, ledger: delivery!.ledger });
  const { rows } = await pipeline.audit.page({ requestId: job!.requestId, limit: 10 });
  const { seed, proof } = job!.randomness!;
  const { txHash, ledger } = delivery!;
  expect(rows).toMatchObject([
    { event: 'revealed', data: { seed, proof, txHash, ledger } },
    { event: 'committed' },
  ]);
});

it('one slot for all processes is one, and outlives the process that is killed over it', async () => {
  let [waiting, most] = [0, 0];
  const wrap = (submitter: TransactionSubmitter): TransactionSubmitter => ({
    prepare: (...args) => submitter.prepare(...args),
    send: (...args) => submitter.send(...args),
    confirm: (...args) => {
      most = Math.max(most, ++waiting);
      return submitter.confirm(...args).finally(() => (waiting -= 1));
    },
  });
  const heirs = await Promise.all([1, 2].map(() => network.openWorker({ randomness: oneSlot }, { wrap })));
  const { pipeline, connection } = heirs[0]!;
  const drawn = await network.simnet.actions.drawRaffles(
    Array.from({ length: 4 }, () => ({ prizeLumens: 50 })),
  );
  const ids = drawn.map(({ requestId }) => String(requestId));
  for (const { requestId, raffleId } of drawn)
    await pipeline.service.submit({ requestId: String(requestId), raffleId, source: 'event' });
  await doomed.start();
  expect(await doomed.died).toBe('SIGKILL');
  // Taken by the dead one: nobody has it before its lease is over.
  const slots = connection.collection('randomnessSlots');
  expect(await slots.find().toArray()).toMatchObject([{ token: expect.any(String) as string }]);

  await Promise.all(heirs.map(({ pool }) => pool.start()));
  await untilAll(pipeline, ids, 'confirmed');
  await Promise.all(heirs.map(({ pool }) => pool.stop()));
  expect(most).toBe(1);
  const { raffle } = network.simnet.contracts;
  for (const id of ids) expect(deliveriesOf(raffle, id)).toHaveLength(1);
});
