import { startSimnet, type Simnet } from '../../../src/simnet';
import { EventsClient } from '../../../src/stellar/events-client';
import { RpcPool } from '../../../src/stellar/rpc/rpc-pool';
import { SorobanRpc } from '../../../src/stellar/rpc/soroban-rpc';
import { decodeContractValue } from '../../../src/stellar/scval-codec';
import { fieldOf } from '../../../src/ingestion/event-decoder';
import type { ContractEvent } from '../../../src/ingestion/event-handler';
import { queueDirectory, until } from '../../support/ingestion-fixture';
import { makePropagator } from '../../support/ingestion-propagator';

const directory = queueDirectory();
let net: Simnet;

beforeAll(async () => {
  net = await startSimnet({ ledgerMs: 50, retentionLedgers: 1_000 });
});
afterAll(async () => {
  await net.stop();
  directory.remove();
});

it('takes in what contracts emit on a network, over its RPC, page by page', async () => {
  const rpcPool = new RpcPool({
    urls: net.rpcUrls,
    networkPassphrase: net.networkPassphrase,
    timeoutMs: 2_000,
    failureThreshold: 3,
    cooldownMs: 1_000,
    maxLagLedgers: 5,
  });
  const seen: ContractEvent[] = [];
  const propagator = makePropagator({
    source: new EventsClient(new SorobanRpc(rpcPool)),
    decode: decodeContractValue,
    contractIds: [net.contracts.oracle],
    startLedger: undefined,
    queuePath: directory.file(),
    tuning: { pageLimit: 7, pollIntervalMs: 20 },
  });
  propagator.onEvent((event) => Promise.resolve(void seen.push(event)));
  propagator.start();
  await until(() => propagator.health().lastRound?.kind === 'caught_up', 'the tip');
  const emitted = await net.actions.emitVerificationRequests(
    Array.from({ length: 40 }, (_, n) => ({
      manifestCid: `manifest-${n}`,
      mediaCid: `media-${n}`,
      requester: net.oracleKeypair.publicKey(),
    })),
  );
  await until(() => seen.length === 40, 'all requests');
  expect(seen.map(({ value }) => fieldOf(value, 'manifest_cid'))).toEqual(
    emitted.map((_, n) => expect.objectContaining({ value: `manifest-${n}` }) as unknown),
  );
  expect(new Set(seen.map(({ identity }) => identity)).size).toBe(40);
  expect(seen.map(({ transactionHash }) => transactionHash)).toEqual(emitted.map(({ txHash }) => txHash));
  expect(propagator.queue.store.gaps()).toEqual([]);
  await propagator.stop();
});
