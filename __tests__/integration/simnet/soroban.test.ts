import type { Transaction } from '@stellar/stellar-sdk';
import {
  authorizeEntry,
  BASE_FEE,
  Keypair,
  Operation,
  rpc,
  scValToNative,
  TransactionBuilder,
  xdr,
} from '@stellar/stellar-sdk';
import { Bench } from './support';

describe('Soroban transactions', () => {
  let bench: Bench;

  beforeEach(async () => {
    bench = await Bench.start({ endpoints: 2 });
  });

  afterEach(() => bench.stop());

  it('asks for a restore of archived entries, refuses in a ledger, and takes the call after it', async () => {
    const { provenance } = bench.net.contracts;
    const oracle = bench.net.oracleKeypair;
    const prepared = await bench.prepareMint('manifest');
    bench.net.archive(provenance);

    const archived = await bench.land(prepared);
    expect(archived.status).toBe('FAILED');
    if (archived.status !== rpc.Api.GetTransactionStatus.FAILED) throw new Error(archived.status);
    const result = archived.resultXdr.result().results()[0]!.tr().invokeHostFunctionResult();
    expect(result.switch().name).toBe('invokeHostFunctionEntryArchived');

    const simulated = await bench.server.simulateTransaction(
      await bench.build(oracle, bench.mintOperation('manifest')),
    );
    if (!rpc.Api.isSimulationRestore(simulated)) throw new Error('no restore preamble');
    const { transactionData, minResourceFee } = simulated.restorePreamble;
    const restore = new TransactionBuilder(await bench.server.getAccount(oracle.publicKey()), {
      fee: String(Number(BASE_FEE) + Number(minResourceFee)),
      networkPassphrase: bench.net.networkPassphrase,
    })
      .setSorobanData(transactionData.build())
      .addOperation(Operation.restoreFootprint({}))
      .setTimeout(60)
      .build();
    restore.sign(oracle);
    expect((await bench.land(restore)).status).toBe('SUCCESS');
    expect((await bench.land(await bench.prepareMint('manifest'))).status).toBe('SUCCESS');
  });

  it('answers with result meta v3 and v4, whichever the endpoint is set to', async () => {
    const { hash } = await (async () => {
      const sent = await bench.server.sendTransaction(await bench.prepareMint('manifest'));
      bench.net.closeLedger();
      return sent;
    })();
    bench.net.setFaults({ rules: [{ endpoints: [1], fault: { kind: 'meta', version: 3 } }] });
    const versions = await Promise.all(
      bench.servers.map(async (server) => {
        const landed = await server.getTransaction(hash);
        if (landed.status !== rpc.Api.GetTransactionStatus.SUCCESS) throw new Error(landed.status);
        expect(scValToNative(landed.returnValue!)).toBe(1n);
        expect(landed.events.contractEventsXdr[0]).toHaveLength(1);
        return landed.resultMetaXdr;
      }),
    );
    expect(versions.map((meta) => meta.switch())).toEqual([4, 3]);
    expect(versions[0]!.v4().operations()[0]!.events()).toHaveLength(1);
    expect(versions[1]!.v3().sorobanMeta()!.events()).toHaveLength(1);
  });

  it('takes a signed authorisation entry in place of a source account, once', async () => {
    const sender = bench.funded(0);
    const oracle = bench.net.oracleKeypair;
    const simulated = await bench.server.simulateTransaction(
      await bench.build(sender, bench.mintOperation('manifest')),
    );
    if (!rpc.Api.isSimulationSuccess(simulated)) throw new Error(simulated.error);
    const entry = await authorizeEntry(
      simulated.result!.auth[0]!,
      oracle,
      bench.net.latestLedger + 100,
      bench.net.networkPassphrase,
    );
    const withAuth = async (
      entries: xdr.SorobanAuthorizationEntry[],
      manifestHash: string,
    ): Promise<Transaction> => {
      const operation = bench.mintOperation(manifestHash);
      operation.body().invokeHostFunctionOp().auth(entries);
      const transaction = await bench.build(sender, operation);
      const assembled = rpc.assembleTransaction(transaction, simulated).build();
      assembled.sign(sender);
      return assembled;
    };
    const forged = await authorizeEntry(
      simulated.result!.auth[0]!,
      Keypair.random(),
      bench.net.latestLedger + 100,
      bench.net.networkPassphrase,
    );
    expect((await bench.land(await withAuth([forged], 'manifest'))).status).toBe('FAILED');
    // An entry covers the very arguments it was signed for.
    expect((await bench.land(await withAuth([entry], 'another'))).status).toBe('FAILED');
    expect((await bench.land(await withAuth([entry], 'manifest'))).status).toBe('SUCCESS');
  });

  it('reads accounts, contract data and its lifetime as ledger entries', async () => {
    await bench.land(await bench.prepareMint('manifest'));
    const key = xdr.ScVal.scvVec([xdr.ScVal.scvSymbol('Manifest'), xdr.ScVal.scvString('manifest')]);
    const entry = await bench.server.getContractData(bench.net.contracts.provenance, key);
    expect(scValToNative(entry.val.contractData().val())).toBe(1n);
    expect(entry.lastModifiedLedgerSeq).toBe(1001);
    expect(entry.liveUntilLedgerSeq).toBeGreaterThan(1001);
    const instance = await bench.server.getLedgerEntries(
      xdr.LedgerKey.contractData(
        new xdr.LedgerKeyContractData({
          contract: entry.key.contractData().contract(),
          key: xdr.ScVal.scvLedgerKeyContractInstance(),
          durability: xdr.ContractDataDurability.persistent(),
        }),
      ),
    );
    expect(instance.entries).toHaveLength(1);
    await expect(bench.server.getAccount(Keypair.random().publicKey())).rejects.toThrow('Account not found');
  });

  it('shows the sequence number of the past on a lagging endpoint', async () => {
    const source = bench.funded(0).publicKey();
    const before = (await bench.server.getAccount(source)).sequenceNumber();
    bench.net.setFaults({ rules: [{ endpoints: [1], fault: { kind: 'lag', ledgers: 1 } }] });
    const transaction = await bench.build(
      bench.funded(0),
      Operation.createAccount({ destination: Keypair.random().publicKey(), startingBalance: '5' }),
    );
    transaction.sign(bench.funded(0));
    await bench.land(transaction);
    expect((await bench.servers[0]!.getAccount(source)).sequenceNumber()).toBe(String(BigInt(before) + 1n));
    expect((await bench.servers[1]!.getAccount(source)).sequenceNumber()).toBe(before);
  });

  it('reports what the last ledgers paid', async () => {
    await bench.land(await bench.prepareMint('manifest'));
    const stats = await bench.server.getFeeStats();
    expect(stats.sorobanInclusionFee).toMatchObject({ p99: '100', transactionCount: '1', ledgerCount: 50 });
    expect(stats.inclusionFee.transactionCount).toBe('0');
  });

  it('tells a wrong function, a wrong argument and a missing contract apart', async () => {
    const simulate = async (contract: string, name: string, args: xdr.ScVal[]): Promise<string> => {
      const simulated = await bench.server.simulateTransaction(
        await bench.build(
          bench.funded(0),
          Operation.invokeContractFunction({ contract, function: name, args }),
        ),
      );
      if (!rpc.Api.isSimulationError(simulated)) throw new Error('no error');
      expect(simulated.events).toHaveLength(2);
      return simulated.error.split('\n')[0]!;
    };
    const { provenance } = bench.net.contracts;
    expect(await simulate(provenance, 'burn', [])).toBe('HostError: Error(WasmVm, MissingValue)');
    expect(await simulate(provenance, 'get_certificate', [])).toBe('HostError: Error(WasmVm, InternalError)');
    expect(await simulate(provenance, 'get_certificate', [xdr.ScVal.scvU32(1)])).toBe(
      'HostError: Error(Value, UnexpectedType)',
    );
    const absent = bench.net.ledger.host.contractIdFor('absent');
    expect(await simulate(absent, 'mint', [])).toBe('HostError: Error(Storage, MissingValue)');
    expect(
      await simulate(provenance, 'get_certificate', [xdr.ScVal.scvU64(xdr.Uint64.fromString('9'))]),
    ).toBe('HostError: Error(Contract, #2)');
  });
});
