import {
  Address,
  Contract,
  Keypair,
  nativeToScVal,
  Operation,
  rpc,
  scValToNative,
} from '@stellar/stellar-sdk';
import { Bench } from './support';

describe('the unmodified rpc.Server against the simulated network', () => {
  let bench: Bench;

  beforeEach(async () => {
    bench = await Bench.start();
  });

  afterEach(() => bench.stop());

  it('mints a certificate: prepare, send, read back with return value and event', async () => {
    const landed = await bench.land(await bench.prepareMint('manifest-1'));
    if (landed.status !== rpc.Api.GetTransactionStatus.SUCCESS) throw new Error(landed.status);
    expect(scValToNative(landed.returnValue!)).toBe(1n);
    expect(landed.ledger).toBe(bench.net.latestLedger);
    expect(bench.net.observer.certificates()).toEqual([
      {
        certificateId: '1',
        owner: bench.funded(3).publicKey(),
        manifestHash: 'manifest-1',
        storageId: 'bafy',
        attestationHash: 'att',
        txHash: landed.txHash,
        ledger: landed.ledger,
      },
    ]);

    const { events } = await bench.server.getEvents({
      startLedger: 1000,
      filters: [{ type: 'contract', contractIds: [bench.net.contracts.provenance] }],
    });
    expect(events).toHaveLength(1);
    expect(events[0]!.topic.map((topic): unknown => scValToNative(topic))).toEqual([
      'certificate_minted',
      bench.funded(3).publicKey(),
      1n,
      'manifest-1',
    ]);
    expect(scValToNative(events[0]!.value)).toEqual({});
  });

  it('refuses a second mint of a manifest, in simulation and in a ledger', async () => {
    const first = await bench.prepareMint('manifest-1');
    // Prepared while the manifest was free: it passes simulation and fails where it counts.
    const other = await bench.server.prepareTransaction(
      await bench.build(
        bench.funded(0),
        bench.mintOperation('manifest-1', bench.net.oracleKeypair.publicKey()),
      ),
    );
    other.sign(bench.funded(0), bench.net.oracleKeypair);
    await bench.land(first);
    await expect(bench.prepareMint('manifest-1')).rejects.toThrow('HostError: Error(Contract, #3)');

    const before = await bench.server.getAccountEntry(bench.funded(0).publicKey());
    const late = await bench.land(other);
    expect(late.status).toBe('FAILED');
    const after = await bench.server.getAccountEntry(bench.funded(0).publicKey());
    expect(after.balance().toBigInt()).toBeLessThan(before.balance().toBigInt());
    expect(bench.net.observer.certificates()).toHaveLength(1);
  });

  it('lets only the oracle mint', async () => {
    const stranger = bench.funded(0);
    const transaction = await bench.prepared(stranger, bench.mintOperation('manifest-1'));
    const landed = await bench.land(transaction);
    expect(landed.status).toBe('FAILED');
  });

  it('answers the views that a worker asks before minting', async () => {
    const { registry, oracle, provenance } = bench.net.contracts;
    const key = bench.net.oracleKeypair;
    const ask = async (
      contract: string,
      name: string,
      ...args: Parameters<Contract['call']> extends [string, ...infer A] ? A : never
    ) => {
      const simulated = await bench.server.simulateTransaction(
        await bench.build(bench.funded(0), new Contract(contract).call(name, ...args)),
      );
      if (!rpc.Api.isSimulationSuccess(simulated)) throw new Error(simulated.error);
      return scValToNative(simulated.result!.retval) as unknown;
    };
    const teeHash = nativeToScVal(Buffer.from(bench.net.teeHash, 'hex'));
    expect(await ask(registry, 'is_verified', teeHash, nativeToScVal(key.rawPublicKey()))).toBe(true);
    expect(await ask(registry, 'is_verified', teeHash, nativeToScVal(Buffer.alloc(32)))).toBe(false);
    expect(await ask(oracle, 'is_provider', Address.fromString(key.publicKey()).toScVal())).toBe(true);
    expect(await ask(provenance, 'get_certificate_by_manifest', nativeToScVal('none'))).toBeNull();
    await bench.land(await bench.prepareMint('manifest-1'));
    expect(await ask(provenance, 'get_certificate_by_manifest', nativeToScVal('manifest-1'))).toBe(1n);
    expect(await ask(provenance, 'get_certificate', nativeToScVal(1n, { type: 'u64' }))).toMatchObject({
      manifest_hash: 'manifest-1',
    });
  });

  it('creates and funds accounts by transactions and by friendbot', async () => {
    const channel = Keypair.random();
    const landed = await bench.land(
      await (async () => {
        const transaction = await bench.build(
          bench.funded(0),
          Operation.createAccount({ destination: channel.publicKey(), startingBalance: '25.5' }),
        );
        transaction.sign(bench.funded(0));
        return transaction;
      })(),
    );
    expect(landed.status).toBe('SUCCESS');
    const entry = await bench.server.getAccountEntry(channel.publicKey());
    expect(entry.balance().toString()).toBe('255000000');
    expect(entry.seqNum().toBigInt()).toBe(BigInt(bench.net.latestLedger) << 32n);

    const friend = Keypair.random().publicKey();
    expect((await bench.server.fundAddress(friend)).status).toBe('SUCCESS');
    expect((await bench.server.getAccountEntry(friend)).balance().toString()).toBe('100000000000');
  });
});
