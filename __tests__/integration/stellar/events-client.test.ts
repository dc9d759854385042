import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { StrKey } from '@stellar/stellar-sdk';
import { startSimnet, type Simnet } from '../../../src/simnet';
import { EventsClient } from '../../../src/stellar/events-client';
import { RpcPool } from '../../../src/stellar/rpc/rpc-pool';
import { SorobanRpc } from '../../../src/stellar/rpc/soroban-rpc';
import { decodeContractValue } from '../../../src/stellar/scval-codec';

describe('reading events', () => {
  let simnet: Simnet;
  let pool: RpcPool;
  let events: EventsClient;
  const { signal } = new AbortController();

  beforeAll(async () => {
    simnet = await startSimnet({ ledgerMs: 0 });
    pool = new RpcPool({
      urls: simnet.rpcUrls,
      networkPassphrase: simnet.networkPassphrase,
      timeoutMs: 5_000,
      failureThreshold: 3,
      cooldownMs: 1_000,
      maxLagLedgers: 5,
    });
    events = new EventsClient(new SorobanRpc(pool));
    const timer = setInterval(() => simnet.closeLedger(), 20);
    const requester = simnet.oracleKeypair.publicKey();
    await simnet.actions.emitVerificationRequests(
      [1, 2, 3].map((n) => ({ manifestCid: `manifest-${n}`, mediaCid: `media-${n}`, requester })),
    );
    clearInterval(timer);
  });
  afterEach(() => simnet.setFaults({}));
  afterAll(async () => {
    pool.close();
    await simnet.stop();
  });
  const ours = () => [simnet.contracts.oracle];

  // C.7 rows 2 and 3: pages that are not full, and empty ones, still say where to go on.
  it('follows the cursor through pages smaller than a ledger, to an empty one at the tip', async () => {
    const seen: string[] = [];
    let result = await events.fetchEvents({ contractIds: ours(), startLedger: 1000, limit: 2 }, signal);
    for (let pages = 0; pages < 3; pages += 1) {
      if (result.kind !== 'page') throw new Error(result.kind);
      seen.push(...result.page.events.map((event) => event.id));
      expect(result.page.cursor).not.toBeNull();
      result = await events.fetchEvents(
        { contractIds: ours(), cursor: result.page.cursor!, limit: 2 },
        signal,
      );
    }
    expect(seen).toHaveLength(3);
    expect(seen).toEqual([...new Set(seen)].sort());
    expect(result).toMatchObject({ kind: 'page', page: { events: [], latestLedger: simnet.latestLedger } });
  });

  it('hands out what nodes send, undecoded', async () => {
    const result = await events.fetchEvents({ contractIds: ours(), startLedger: 1000, limit: 1 }, signal);
    if (result.kind !== 'page') throw new Error(result.kind);
    const [event] = result.page.events;
    expect(event).toMatchObject({ type: 'contract', contractId: simnet.contracts.oracle });
    expect(decodeContractValue(event!.topic[0]!)).toEqual({
      type: 'symbol',
      value: 'verification_requested',
    });
    expect(result.page.latestLedgerCloseTime).toMatch(/^\d+$/);
  });

  it('tells when a ledger closed, and nothing of one that the node does not have', async () => {
    const latest = simnet.latestLedger;
    const result = await events.fetchEvents({ contractIds: ours(), startLedger: latest, limit: 1 }, signal);
    if (result.kind !== 'page') throw new Error(result.kind);
    expect(await events.closeTimeOf(latest, signal)).toBe(result.page.latestLedgerCloseTime);
    expect(await events.closeTimeOf(latest + 1_000, signal)).toBeNull();
  });

  // C.7 row 5: both ends, off by one.
  it('tells a start outside the window, with both ends of the window', async () => {
    simnet.closeLedgers(10);
    simnet.setFaults({ rules: [{ fault: { kind: 'retention', ledgers: 5 } }] });
    const latest = simnet.latestLedger;
    const oldest = latest - 4;
    const at = (startLedger: number) =>
      events.fetchEvents({ contractIds: ours(), startLedger, limit: 1 }, signal);
    expect(await at(oldest - 1)).toMatchObject({ kind: 'out_of_range', oldest, latest });
    expect(await at(oldest)).toMatchObject({ kind: 'page' });
    expect(await at(latest)).toMatchObject({ kind: 'page' });
    expect(await at(latest + 1)).toMatchObject({ kind: 'out_of_range', oldest, latest });
  });

  // C.7 row 1, stellar-rpc#313: another node's cursor is answered with empty pages for ever.
  it("tells a cursor that the answering node's history does not hold", async () => {
    const page = await events.fetchEvents(
      { contractIds: ours(), startLedger: simnet.latestLedger, limit: 1 },
      signal,
    );
    if (page.kind !== 'page') throw new Error(page.kind);
    for (const ledgerOffset of [-900, 50_000]) {
      simnet.setFaults({ rules: [{ fault: { kind: 'otherHistory', ledgerOffset } }] });
      expect(
        await events.fetchEvents({ contractIds: ours(), cursor: page.page.cursor!, limit: 1 }, signal),
      ).toMatchObject({ kind: 'out_of_range', latest: simnet.latestLedger + ledgerOffset });
    }
  });

  // C.7 row 4: hot topics run into the node's limit however few ledgers are asked for.
  it('tells that a query is too heavy', async () => {
    simnet.setFaults({
      rules: [
        {
          methods: ['getEvents'],
          fault: { kind: 'rpcError', code: -32001, message: 'request exceeded processing limit threshold' },
        },
      ],
    });
    expect(await events.fetchEvents({ contractIds: ours(), startLedger: 1000, limit: 100 }, signal)).toEqual({
      kind: 'too_heavy',
    });
  });

  it('covers 25 contracts in filters of five, and refuses more', async () => {
    const ids = Array.from({ length: 26 }, (_, index) => StrKey.encodeContract(Buffer.alloc(32, index)));
    const query = { startLedger: 1000, limit: 10 };
    const result = await events.fetchEvents(
      { ...query, contractIds: [...ids.slice(0, 24), ...ours()] },
      signal,
    );
    expect(result).toMatchObject({ kind: 'page', page: { events: [{}, {}, {}] } });
    await expect(events.fetchEvents({ ...query, contractIds: ids }, signal)).rejects.toMatchObject({
      code: 'TOO_MANY_CONTRACTS',
    });
  });

  it('passes on a refusal that has nothing to do with the window', async () => {
    await expect(
      events.fetchEvents(
        { contractIds: ['not a contract'], startLedger: simnet.latestLedger, limit: 1 },
        signal,
      ),
    ).rejects.toMatchObject({ code: 'RPC_REFUSED', kind: 'permanent' });
  });
});

// One node's short memory, or its lag, is no fact about the network.
describe('nodes that know different parts of the chain', () => {
  const { signal } = new AbortController();
  let simnet: Simnet;
  let pool: RpcPool;
  let events: EventsClient;

  beforeAll(async () => {
    simnet = await startSimnet({ ledgerMs: 0, endpoints: 2 });
    pool = new RpcPool({
      urls: simnet.rpcUrls,
      networkPassphrase: simnet.networkPassphrase,
      timeoutMs: 5_000,
      failureThreshold: 3,
      cooldownMs: 1_000,
      maxLagLedgers: 5,
    });
    events = new EventsClient(new SorobanRpc(pool));
    simnet.closeLedgers(50);
  });
  afterAll(async () => {
    pool.close();
    await simnet.stop();
  });
  const ask = (place: { startLedger: number } | { cursor: string }) =>
    events.fetchEvents({ contractIds: [simnet.contracts.oracle], limit: 10, ...place }, signal);

  it('are asked until one has what is wanted', async () => {
    const wanted = simnet.latestLedger - 40;
    simnet.setFaults({ rules: [{ endpoints: [0], fault: { kind: 'retention', ledgers: 5 } }] });
    expect(await ask({ startLedger: wanted })).toMatchObject({ kind: 'page' });
    simnet.setFaults({ rules: [{ endpoints: [1], fault: { kind: 'lag', ledgers: 20 } }] });
    expect(await ask({ startLedger: simnet.latestLedger })).toMatchObject({
      kind: 'page',
      page: { latestLedger: simnet.latestLedger },
    });
    simnet.setFaults({ rules: [{ endpoints: [0], fault: { kind: 'otherHistory', ledgerOffset: -900 } }] });
    const cursor = `${(BigInt(wanted) << 32n).toString().padStart(19, '0')}-0000000000`;
    expect(await ask({ cursor })).toMatchObject({
      kind: 'page',
      page: { latestLedger: simnet.latestLedger },
    });
  });

  it('agree on what is lost', async () => {
    simnet.setFaults({ rules: [{ fault: { kind: 'retention', ledgers: 5 } }] });
    expect(await ask({ startLedger: simnet.latestLedger - 40 })).toMatchObject({ kind: 'out_of_range' });
  });
});

it('an event that is none costs no page', async () => {
  const page = {
    events: [{ id: '1', type: 'contract' }, null],
    cursor: null,
    latestLedger: 10,
    oldestLedger: 1,
    latestLedgerCloseTime: '5',
  };
  const answers: Record<string, unknown> = { getNetwork: { passphrase: 'here' }, getEvents: page };
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      const { id, method } = JSON.parse(body) as { id: number; method: string };
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result: answers[method] }));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const pool = new RpcPool({
    urls: [`http://127.0.0.1:${(server.address() as AddressInfo).port}`],
    networkPassphrase: 'here',
    timeoutMs: 5_000,
    failureThreshold: 3,
    cooldownMs: 1_000,
    maxLagLedgers: 5,
  });
  try {
    const result = await new EventsClient(new SorobanRpc(pool)).fetchEvents(
      { contractIds: [], startLedger: 5, limit: 10 },
      new AbortController().signal,
    );
    expect(result).toMatchObject({ kind: 'page', page: { events: page.events } });
  } finally {
    pool.close();
    server.close();
    server.closeAllConnections();
  }
});
