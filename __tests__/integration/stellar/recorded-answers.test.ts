import { readFileSync } from 'node:fs';
import path from 'node:path';
import { readLanded, readResultCodes, simulationContractCode } from '../../../src/stellar/chain/result-codec';
import { readAccountEntry } from '../../../src/stellar/chain/transaction-codec';
import { EventsClient } from '../../../src/stellar/events-client';
import { RpcPool } from '../../../src/stellar/rpc/rpc-pool';
import { SorobanRpc } from '../../../src/stellar/rpc/soroban-rpc';
import { decodeContractValue } from '../../../src/stellar/scval-codec';
import { startRpcStub, STUB_PASSPHRASE, type RpcStub } from '../../support/stellar-rpc-stub';

type Examples = Record<string, { name: string; value: unknown }>;
const recorded = (file: string): Examples =>
  JSON.parse(
    readFileSync(path.join(__dirname, '../../fixtures/stellar-rpc', `${file}.json`), 'utf8'),
  ) as Examples;
const signal = new AbortController().signal;

/** Answers that real nodes gave, through the client: it has to read each of them. */
describe('answers recorded from real nodes', () => {
  let stub: RpcStub;
  let pool: RpcPool;
  let rpc: SorobanRpc;
  beforeAll(async () => {
    stub = await startRpcStub();
    pool = new RpcPool({
      urls: [stub.url],
      networkPassphrase: STUB_PASSPHRASE,
      timeoutMs: 1_000,
      failureThreshold: 3,
      cooldownMs: 1_000,
      maxLagLedgers: 5,
    });
    rpc = new SorobanRpc(pool);
  });
  afterAll(() => {
    pool.close();
    return stub.close();
  });
  const answer = (method: string, result: unknown): void =>
    stub.answer((call) => (call.method === method ? { result } : undefined));

  const transactions = recorded('Transactions');
  const listed = ['GetTransactionsResult', 'GetTransactionsResultUsingCursor'].flatMap((name) => {
    const { transactions: list, ...range } = transactions[name]!.value as { transactions: object[] };
    return list.map((transaction, index): [string, unknown] => [
      `${name} ${index}`,
      { ...range, ...transaction },
    ]);
  });
  it.each([
    ...['SuccessTransactionResult', 'FailedTransactionResult'].map((name): [string, unknown] => [
      name,
      transactions[name]!.value,
    ]),
    ...listed,
  ])('getTransaction: %s', async (_name, result) => {
    answer('getTransaction', {
      oldestLedger: 1,
      latestLedger: 9,
      latestLedgerCloseTime: '1',
      ...(result as object),
    });
    const { value } = await rpc.transaction('00'.repeat(32), { signal });
    if (value.status === 'NOT_FOUND') throw new Error('a landed transaction was read as not found');
    expect(value.ledger).toBeGreaterThan(0);
    const landed = readLanded(value);
    if (landed.kind === 'success') {
      expect(landed.feeStroops).toBeGreaterThan(0n);
      expect(decodeContractValue(landed.returnValueXdr)).toBeDefined();
    } else {
      expect(landed).toMatchObject({ nature: 'stale', code: expect.stringMatching(/^[a-z]/) as string });
    }
  });

  it('getTransaction: not found', async () => {
    answer('getTransaction', transactions['NotFoundTransactionResult']!.value);
    const { value } = await rpc.transaction('00'.repeat(32), { signal });
    expect(value).toMatchObject({
      status: 'NOT_FOUND',
      latestLedger: 2540099,
      latestLedgerCloseTime: 1700086455,
      oldestLedger: 2538660,
    });
  });

  it.each([
    ['PendingTransactionResult', 'PENDING'],
    ['DuplicateTransactionResult', 'DUPLICATE'],
    ['TryAgainLaterTransactionResult', 'TRY_AGAIN_LATER'],
    ['ErrorTransactionResult', 'ERROR'],
  ])('sendTransaction: %s', async (name, status) => {
    answer('sendTransaction', transactions[name]!.value);
    const { value } = await rpc.send('AAAA', { signal });
    expect(value).toMatchObject({ status, latestLedger: 2553978 });
    if (value.errorResultXdr !== undefined) {
      expect(readResultCodes(value.errorResultXdr)).toEqual({ transaction: 'txBadSeq', feeStroops: 100n });
    }
  });

  it('simulateTransaction: a call that succeeds', async () => {
    answer('simulateTransaction', recorded('Simulations')['SuccessfulSimulationResult']!.value);
    const simulation = await rpc.simulate('AAAA', { signal });
    expect(simulation).toMatchObject({ minResourceFee: 90353n, latestLedger: 2552139 });
    expect(decodeContractValue(simulation.results![0]!.xdr)).toEqual({ type: 'u32', value: 12 });
  });

  it('simulateTransaction: a call that the host refuses without a contract code', async () => {
    answer('simulateTransaction', recorded('Simulations')['FailedSimulationResult']!.value);
    const { error, events } = await rpc.simulate('AAAA', { signal });
    expect(error).toContain('HostError: Error(WasmVm, InternalError)');
    expect(simulationContractCode(error!, events ?? [])).toBeUndefined();
  });

  const entries = recorded('LedgerEntries');
  it.each(Object.keys(entries).filter((name) => name.includes('Result')))(
    'getLedgerEntries: %s',
    async (name) => {
      answer('getLedgerEntries', entries[name]!.value);
      const { value } = await rpc.ledgerEntries([], { signal });
      expect(value.entries!.length).toBeGreaterThan(0);
      expect(() => readAccountEntry(value.entries![0]!.xdr)).toThrow();
    },
  );

  const events = recorded('Events');
  it.each(['TwoNativeTransferEvents', 'AnyTwoEvents'])('getEvents: %s', async (name) => {
    answer('getEvents', events[name]!.value);
    const result = await new EventsClient(rpc).fetchEvents(
      { contractIds: [], startLedger: 1, limit: 2 },
      signal,
    );
    if (result.kind !== 'page') throw new Error(`expected a page, got ${result.kind}`);
    expect(result.page.events).toHaveLength(2);
    expect(result.page.cursor).toEqual(expect.stringMatching(/^\d{19}-\d{10}$/));
    for (const event of result.page.events) {
      expect(event.topic.map(decodeContractValue)[0]).toMatchObject({ type: 'symbol' });
      expect(decodeContractValue(event.value)).toBeDefined();
      expect(event.id > '0' && event.txHash.length === 64).toBe(true);
    }
  });
});
