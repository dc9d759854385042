import { rpc } from '@stellar/stellar-sdk';
import { Bench } from './support';

/** The keys of the recorded answers of real nodes; a method's own additions since then are named beside them. */
const windowKeys = ['latestLedger', 'latestLedgerCloseTime', 'oldestLedger', 'oldestLedgerCloseTime'];
const sendKeys = ['hash', 'latestLedger', 'latestLedgerCloseTime', 'status'];
const landedKeys = [
  ...windowKeys,
  ...[
    'applicationOrder',
    'createdAt',
    'envelopeXdr',
    'events',
    'feeBump',
    'ledger',
    'resultMetaXdr',
    'resultXdr',
  ],
  ...['status', 'txHash'],
];

describe('shapes of the answers, against recordings of real nodes', () => {
  let bench: Bench;

  beforeEach(async () => {
    bench = await Bench.start();
  });

  afterEach(() => bench.stop());

  const ask = async (method: string, params?: unknown): Promise<Record<string, unknown>> => {
    const { result } = await bench.call(method, params);
    return result as unknown as Record<string, unknown>;
  };

  const keys = (value: unknown): string[] => Object.keys(value as object).toSorted();

  it('getTransaction: NOT_FOUND, SUCCESS, FAILED', async () => {
    const hash = 'a'.repeat(64);
    expect(await ask('getTransaction', { hash })).toEqual({
      status: 'NOT_FOUND',
      txHash: hash,
      latestLedger: 1000,
      latestLedgerCloseTime: '1772366400',
      oldestLedger: 1000,
      oldestLedgerCloseTime: '1772366400',
    });

    const minted = await bench.prepareMint('manifest');
    const twin = await bench.server.prepareTransaction(
      await bench.build(
        bench.funded(0),
        bench.mintOperation('manifest', bench.net.oracleKeypair.publicKey()),
      ),
    );
    twin.sign(bench.funded(0), bench.net.oracleKeypair);
    await bench.land(minted);
    await bench.land(twin);

    const success = await ask('getTransaction', { hash: minted.hash().toString('hex') });
    expect(keys(success)).toEqual([...landedKeys, 'diagnosticEventsXdr'].toSorted());
    expect(keys(success['events'])).toEqual(['contractEventsXdr', 'transactionEventsXdr']);
    expect(success).toMatchObject({
      status: 'SUCCESS',
      ledger: 1001,
      applicationOrder: 1,
      feeBump: false,
      createdAt: '1772366400',
    });

    const failed = await ask('getTransaction', { hash: twin.hash().toString('hex') });
    expect(keys(failed)).toEqual([...landedKeys, 'diagnosticEventsXdr'].toSorted());
    expect(keys(failed['events'])).toEqual(['transactionEventsXdr']);
    expect(failed).toMatchObject({ status: 'FAILED', ledger: 1002 });
  });

  it('getTransactions pages by TOID', async () => {
    await bench.land(await bench.prepareMint('one'));
    await bench.land(await bench.prepareMint('two'));
    const first = await ask('getTransactions', { startLedger: 1000, pagination: { limit: 1 } });
    expect(keys(first)).toEqual([
      'cursor',
      'latestLedger',
      'latestLedgerCloseTimestamp',
      'oldestLedger',
      'oldestLedgerCloseTimestamp',
      'transactions',
    ]);
    expect(first['cursor']).toBe(String((1001n << 32n) | (1n << 12n) | 1n));
    const rest = await bench.server.getTransactions({
      pagination: { cursor: first['cursor'] as string, limit: 10 },
    });
    expect(rest.transactions.map(({ ledger }) => ledger)).toEqual([1002]);
  });

  it('sendTransaction: PENDING, DUPLICATE, TRY_AGAIN_LATER, ERROR', async () => {
    const transaction = (await bench.prepareMint('manifest')).toXDR();
    const pending = await ask('sendTransaction', { transaction });
    expect(keys(pending)).toEqual(sendKeys);
    expect(pending).toMatchObject({ status: 'PENDING', latestLedgerCloseTime: '1772366400' });
    expect(keys(await ask('sendTransaction', { transaction }))).toEqual(sendKeys);
    bench.net.closeLedger();
    const later = await ask('sendTransaction', { transaction });
    expect(keys(later)).toEqual(sendKeys);
    expect(later['status']).toBe('TRY_AGAIN_LATER');
    bench.net.closeLedgers(10);
    const error = await ask('sendTransaction', { transaction });
    expect(keys(error)).toEqual(['errorResultXdr', ...sendKeys].toSorted());
    expect(error).toMatchObject({ status: 'ERROR', errorResultXdr: 'AAAAAAAAAGT////7AAAAAA==' });
  });

  it('getEvents', async () => {
    await bench.land(await bench.prepareMint('manifest'));
    const page = await ask('getEvents', { startLedger: 1000, pagination: { limit: 2 } });
    expect(keys(page)).toEqual(['cursor', 'events', ...windowKeys].toSorted());
    const [fee, minted] = page['events'] as [Record<string, unknown>, Record<string, unknown>];
    const eventKeys = [
      ...[
        'contractId',
        'id',
        'inSuccessfulContractCall',
        'ledger',
        'ledgerClosedAt',
        'operationIndex',
        'topic',
      ],
      ...['transactionIndex', 'txHash', 'type', 'value'],
    ];
    expect(keys(fee)).toEqual(eventKeys);
    expect(fee).toMatchObject({ transactionIndex: 0, operationIndex: 0, type: 'contract' });
    expect(minted).toMatchObject({ transactionIndex: 1, ledgerClosedAt: '2026-03-01T12:00:00Z' });
    expect(page['cursor']).toBe(minted['id']);
  });

  it('simulateTransaction: success and failure', async () => {
    const simulate = async (name: string, ...args: Parameters<typeof bench.mintOperation>) =>
      ask('simulateTransaction', {
        transaction: (await bench.build(bench.net.oracleKeypair, bench.mintOperation(...args))).toXDR(),
        name,
      });
    const success = await simulate('first', 'manifest');
    expect(keys(success)).toEqual(
      // stateChanges came after the recording, and cost went.
      ['events', 'latestLedger', 'minResourceFee', 'results', 'stateChanges', 'transactionData'],
    );
    expect(keys((success['results'] as object[])[0])).toEqual(['auth', 'xdr']);
    expect(typeof success['minResourceFee']).toBe('string');
    await bench.land(await bench.prepareMint('manifest'));
    const failure = await simulate('second', 'manifest');
    expect(keys(failure)).toEqual(['error', 'events', 'latestLedger']);
  });

  it('getLedgers tells of each ledger, and refuses what lies outside the window', async () => {
    const { ledgers, latestLedger } = await bench.server.getLedgers({
      startLedger: 1000,
      pagination: { limit: 1 },
    });
    expect(ledgers).toMatchObject([{ sequence: 1000, ledgerCloseTime: '1772366400' }]);
    expect((await bench.call('getLedgers', { startLedger: latestLedger + 1 })).error?.code).toBe(-32600);
    expect((await bench.call('getLedgers', { startLedger: 999 })).error?.code).toBe(-32600);
  });

  it('getLedgerEntries, getLatestLedger, getHealth, getNetwork, getVersionInfo', async () => {
    expect(keys(await ask('getHealth'))).toEqual(
      [...windowKeys, 'ledgerRetentionWindow', 'status'].toSorted(),
    );
    expect(keys(await ask('getNetwork'))).toEqual(['friendbotUrl', 'passphrase', 'protocolVersion']);
    expect(keys(await ask('getVersionInfo'))).toContain('protocolVersion');
    expect(await bench.server.getLatestLedger()).toMatchObject({ sequence: 1000, closeTime: '1772366400' });
    const missing = await ask('getLedgerEntries', { keys: [] });
    expect(missing).toEqual({ entries: [], latestLedger: 1000 });
    expect((await bench.call('getLedgerEntries', { keys: ['AAAA'] })).error?.code).toBe(-32602);
    expect((await bench.call('getTransaction', { hash: 'abc' })).error?.code).toBe(-32602);
    expect(rpc.Api.GetTransactionStatus.NOT_FOUND).toBe('NOT_FOUND');
  });
});
