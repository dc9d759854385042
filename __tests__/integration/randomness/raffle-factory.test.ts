import { StrKey } from '@stellar/stellar-sdk';
import { EventPropagator } from '../../../src/ingestion/event-propagator';
import { contractValue, type ContractValue } from '../../../src/stellar/contract-value';
import { contractValueBytes, decodeContractValue } from '../../../src/stellar/scval-codec';
import { CONTRACT_A, CONTRACT_B, makeEvent, ScriptedChain } from '../../support/ingestion-chain';
import { queueDirectory, until } from '../../support/ingestion-fixture';
import {
  fakeContractId,
  openRandomness,
  type RandomnessFixture,
  openPipeline,
  randomnessSettingsFor,
} from '../../support/randomness-fixture';

const FACTORY = CONTRACT_A;
const INSTANCE = CONTRACT_B;
const STRANGER = StrKey.encodeContract(Buffer.alloc(32, 9));
const directory = queueDirectory();
let world: RandomnessFixture;
let propagator: EventPropagator;

const eventOf = (ledger: number, contractId: string, topic: string, fields: Record<string, ContractValue>) =>
  makeEvent({
    ledger,
    contractId,
    topics: [topic],
    value: Buffer.from(contractValueBytes(contractValue.struct(fields))).toString('base64'),
  });
/** As factories in the field write it: the hash of the raffle's metadata is its second topic. */
const announces = (ledger: number, contractId: string, instance: string) => {
  const event = eventOf(ledger, contractId, 'raffle_created', { raffle_id: contractValue.address(instance) });
  const metadataHash = Buffer.from(contractValueBytes(contractValue.bytes(Buffer.alloc(32, 7))));
  return { ...event, topic: [...event.topic, metadataHash.toString('base64')] };
};
const asks = (ledger: number, contractId: string, requestId: number) =>
  eventOf(ledger, contractId, 'randomness_requested', { request_id: contractValue.u64(BigInt(requestId)) });

beforeAll(async () => {
  world = await openRandomness({
    RAFFLE_CONTRACT_INTERFACE: 'provide_randomness',
    RAFFLE_FACTORY_CONTRACT_ID: FACTORY,
  });
});
afterAll(async () => {
  await propagator.stop();
  await world.close();
  directory.remove();
});

it('raffles that the factory makes are served until they are over, beside the configured one', async () => {
  const { eventHandlers, service, rescue } = world.pipeline;
  const chain = new ScriptedChain(
    [
      announces(110, FACTORY, INSTANCE),
      asks(111, INSTANCE, 7),
      asks(112, fakeContractId, 8),
      // Said by one whose word counts for nothing.
      announces(113, INSTANCE, STRANGER),
    ],
    120,
  );
  const contractIds = [...new Set(eventHandlers.flatMap(({ contracts = [] }) => contracts))];
  expect(contractIds.sort()).toEqual([FACTORY, fakeContractId].sort());
  propagator = new EventPropagator({
    source: chain,
    decode: decodeContractValue,
    contractIds,
    startLedger: 100,
    handlers: eventHandlers,
    queuePath: directory.file(),
    tuning: { pollIntervalMs: 10, processIntervalMs: 10 },
  });
  propagator.start();
  const isQueued = async (contractId: string, requestId: string): Promise<boolean> =>
    (await rescue.find(service.identityOf(contractId, requestId))) !== null;
  await until(() => isQueued(INSTANCE, '7'), 'the request of the new raffle');
  await until(() => isQueued(fakeContractId, '8'), 'the request of the configured one');
  await until(() => propagator.getQueueStats().pending === 0, 'all to be handled');
  expect(propagator.queue.followed.list()).toEqual([INSTANCE]);

  const endings = ['raffle_finalized', 'raffle_cancelled', 'raffle_failed'];
  const others = [1, 2].map((fill) => StrKey.encodeContract(Buffer.alloc(32, 20 + fill)));
  others.forEach((other, index) => chain.add(announces(130 + index, FACTORY, other)));
  await until(() => propagator.queue.followed.list().length === 3, 'the other raffles');
  for (const [index, raffle] of [INSTANCE, ...others].entries()) {
    const ended = { raffle_id: contractValue.address(raffle) };
    chain.add(eventOf(140 + index, raffle, endings[index]!, ended));
    await until(() => !propagator.queue.followed.list().includes(raffle), endings[index]);
    expect(propagator.queue.followed.list()).toHaveLength(2 - index);
  }
  expect(propagator.getQueueStats().failed).toBe(0);
});

it('a factory alone is enough, and each request by hand then names its contract', async () => {
  const settings = randomnessSettingsFor({
    RAFFLE_CONTRACT_INTERFACE: 'provide_randomness',
    RAFFLE_FACTORY_CONTRACT_ID: FACTORY,
  });
  const { eventHandlers, service, rescue } = await openPipeline(world.connection, {
    submitter: world.chain,
    reader: world.chain,
    feeEstimator: world.chain,
    latestLedger: () => Promise.resolve(1),
    settings: { ...settings, RAFFLE_CONTRACT_ID: undefined },
  });
  expect(eventHandlers.flatMap(({ contracts = [] }) => contracts)).toEqual([FACTORY]);
  const request = { requestId: '9', raffleId: null, source: 'api' } as const;
  await expect(service.submit(request)).rejects.toMatchObject({
    status: 400,
    message: expect.stringContaining('contractId') as string,
  });
  expect(await service.submit({ ...request, contractId: INSTANCE })).toMatchObject({
    requestId: `${INSTANCE}:9`,
  });
  await expect(rescue.planForceSubmit({ requestId: '9', raffleId: null })).rejects.toMatchObject({
    code: 'CONTRACT_NEEDED',
  });
});
