import { createHash } from 'node:crypto';
import type { xdr } from '@stellar/stellar-sdk';
import { Keypair, nativeToScVal, Operation, rpc, scValToNative } from '@stellar/stellar-sdk';
import { provideRandomnessMessage } from '../../../src/simnet/contracts/raffle-instance';
import { proofMessages } from '../../../src/simnet/contracts/raffle-proof';
import { Bench } from './support';

const sha256 = (...parts: Uint8Array[]): Buffer => {
  const digest = createHash('sha256');
  for (const part of parts) digest.update(part);
  return digest.digest();
};

describe('raffle contracts', () => {
  let bench: Bench;

  beforeEach(async () => {
    bench = await Bench.start();
  });

  afterEach(() => bench.stop());

  const landed = async <T>(action: Promise<T>): Promise<T> => {
    bench.net.closeLedger();
    return action;
  };

  const invoke = (contract: string, name: string, args: xdr.ScVal[]): xdr.Operation =>
    Operation.invokeContractFunction({ contract, function: name, args });

  /** The contract's own error code, from simulation. */
  const refusal = async (operation: xdr.Operation): Promise<number | undefined> => {
    const simulated = await bench.server.simulateTransaction(
      await bench.build(bench.net.oracleKeypair, operation),
    );
    if (!rpc.Api.isSimulationError(simulated)) return undefined;
    return Number(/^HostError: Error\(Contract, #(\d+)\)/.exec(simulated.error)?.[1]);
  };

  const view = async (contract: string, name: string, args: xdr.ScVal[]): Promise<unknown> => {
    const simulated = await bench.server.simulateTransaction(
      await bench.build(bench.funded(0), invoke(contract, name, args)),
    );
    if (!rpc.Api.isSimulationSuccess(simulated)) throw new Error(simulated.error);
    return scValToNative(simulated.result!.retval);
  };

  const deliver = async (operation: xdr.Operation): Promise<string> =>
    (await bench.land(await bench.prepared(bench.net.oracleKeypair, operation))).status;

  const u32 = (value: number) => nativeToScVal(value, { type: 'u32' });
  const u64 = (value: bigint) => nativeToScVal(value, { type: 'u64' });

  describe('receive_randomness', () => {
    const raffle = () => bench.net.contracts.raffle;

    const receive = (raffleId: number, seed: Buffer, proof: Buffer): xdr.Operation =>
      invoke(raffle(), 'receive_randomness', [u32(raffleId), nativeToScVal(seed), nativeToScVal(proof)]);

    const proofOf = (
      raffleId: number,
      requestId: number,
      version: 0 | 1,
      signer = bench.net.oracleKeypair,
    ): Buffer =>
      signer.sign(
        proofMessages({
          networkId: bench.net.ledger.host.networkId,
          contractId: raffle(),
          requestId: String(requestId),
          raffleId,
        })[version]!,
      );

    it.each([0, 1] as const)('takes a signed seed (message version %#), once', async (version) => {
      const [drawn] = await landed(bench.net.actions.drawRaffles([{ prizeLumens: 1000 }]));
      const { raffleId, requestId } = drawn!;
      expect(await view(raffle(), 'get_raffle_data', [u32(raffleId)])).toMatchObject({
        raffle_id: raffleId,
        prize_amount: 10_000_000_000n,
        status: 'DRAWING',
        seed: null,
      });
      const proof = proofOf(raffleId, requestId, version);
      const seed = sha256(proof);
      expect(await deliver(receive(raffleId, seed, proof))).toBe('SUCCESS');
      expect(await view(raffle(), 'get_raffle_data', [u32(raffleId)])).toMatchObject({
        status: 'FINALIZED',
        seed,
      });
      expect(await refusal(receive(raffleId, seed, proof))).toBe(61);
      expect(bench.net.observer.raffleDeliveries()).toMatchObject([
        {
          interfaceName: 'receive_randomness',
          raffleId,
          requestId: String(requestId),
          seed: seed.toString('hex'),
        },
      ]);
    });

    it('judges the proof: key, message, seed, and the method for the prize', async () => {
      const [large, small] = await landed(
        bench.net.actions.drawRaffles([{ prizeLumens: 500 }, { prizeLumens: 499, highPriority: true }]),
      );
      const good = proofOf(large!.raffleId, large!.requestId, 0);
      const foreign = proofOf(large!.raffleId, large!.requestId, 0, Keypair.random());
      expect(await refusal(receive(large!.raffleId, sha256(foreign), foreign))).toBe(21);
      expect(await refusal(receive(large!.raffleId, sha256(Buffer.from('x')), good))).toBe(21);
      const other = proofOf(small!.raffleId, small!.requestId, 0);
      expect(await refusal(receive(large!.raffleId, sha256(other), other))).toBe(21);
      const prng = Buffer.alloc(64, 7);
      expect(await refusal(receive(large!.raffleId, sha256(prng), prng))).toBe(21);
      expect(await refusal(receive(small!.raffleId, sha256(prng), prng))).toBeUndefined();
      expect(await refusal(receive(99, sha256(prng), prng))).toBe(1);
    });

    it('emits the request, and refuses what comes after a cancellation', async () => {
      const [drawn] = await landed(bench.net.actions.drawRaffles([{ prizeLumens: 3, highPriority: true }]));
      const { events } = await bench.server.getEvents({
        startLedger: 1000,
        filters: [{ type: 'contract', contractIds: [raffle()] }],
      });
      const names = events.map(({ topic }): unknown => scValToNative(topic[0]!));
      expect(names).toEqual(['RaffleCreated', 'DrawTriggered', 'RandomnessRequested']);
      expect(scValToNative(events[2]!.value)).toEqual({
        raffle_id: drawn!.raffleId,
        request_id: drawn!.requestId,
        prize_amount: 30_000_000n,
        priority: true,
        version: 1,
      });
      await landed(bench.net.actions.cancelRaffle(drawn!.raffleId));
      const proof = proofOf(drawn!.raffleId, drawn!.requestId, 0);
      expect(await refusal(receive(drawn!.raffleId, sha256(proof), proof))).toBe(23);
    });

    it('commits to and reveals raw bytes', async () => {
      const [drawn] = await landed(bench.net.actions.drawRaffles([{ prizeLumens: 1000 }]));
      const [secret, nonce] = [Buffer.alloc(32, 1), Buffer.alloc(16, 2)];
      const id = u32(drawn!.raffleId);
      const commit = invoke(raffle(), 'commit_randomness', [id, nativeToScVal(sha256(secret, nonce))]);
      expect(await deliver(commit)).toBe('SUCCESS');
      expect(await refusal(commit)).toBe(25);
      const reveal = (bytes: Buffer) =>
        invoke(raffle(), 'reveal_randomness', [id, nativeToScVal(bytes), nativeToScVal(nonce)]);
      expect(await refusal(reveal(Buffer.alloc(32, 9)))).toBe(21);
      expect(await deliver(reveal(secret))).toBe('SUCCESS');
      expect(bench.net.observer.raffleDeliveries()).toHaveLength(1);
    });
  });

  describe('provide_randomness', () => {
    const provide = (contract: string, seed: bigint, requestId: bigint, signer = bench.net.oracleKeypair) =>
      invoke(contract, 'provide_randomness', [
        u64(seed),
        nativeToScVal(signer.rawPublicKey()),
        nativeToScVal(signer.sign(provideRandomnessMessage(contract, requestId, seed))),
        u64(requestId),
      ]);

    it('takes a signed seed for its own request, once', async () => {
      const contract = bench.net.contracts.raffleInstance;
      expect(await refusal(provide(contract, 5n, 1n))).toBe(23);
      const { requestId } = await landed(bench.net.actions.drawInstance(contract));
      expect(await refusal(provide(contract, 5n, requestId + 1n))).toBe(8);
      expect(await refusal(provide(contract, 5n, requestId, Keypair.random()))).toBe(5);
      const wrong = invoke(contract, 'provide_randomness', [
        u64(5n),
        nativeToScVal(bench.net.oracleKeypair.rawPublicKey()),
        nativeToScVal(bench.net.oracleKeypair.sign(provideRandomnessMessage(contract, requestId, 6n))),
        u64(requestId),
      ]);
      expect(await refusal(wrong)).toBe(21);
      expect(await deliver(provide(contract, 5n, requestId))).toBe('SUCCESS');
      expect(await refusal(provide(contract, 5n, requestId))).toBe(61);
      expect(await view(contract, 'get_raffle', [])).toMatchObject({ status: 2 });
      expect(await view(contract, 'get_fairness_data', [])).toMatchObject({ random_seed: 5n });
      expect(bench.net.observer.raffleDeliveries()).toMatchObject([
        {
          interfaceName: 'provide_randomness',
          contractId: contract,
          requestId: requestId.toString(),
          seed: '5',
        },
      ]);
    });

    it('falls back after 200 ledgers, and takes nothing any more', async () => {
      const contract = bench.net.actions.deployRaffleInstance({ prizeLumens: 10 });
      const { requestId } = await landed(bench.net.actions.drawInstance(contract));
      bench.net.closeLedgers(198);
      await expect(landed(bench.net.actions.triggerFallback(contract, false))).rejects.toThrow(
        'trigger_randomness_fallback failed',
      );
      await landed(bench.net.actions.triggerFallback(contract, false));
      expect(await refusal(provide(contract, 5n, requestId))).toBe(61);
      expect(bench.net.observer.raffleDeliveries()).toEqual([]);
    });

    it('refuses randomness that comes too early, and after a refund', async () => {
      const contract = bench.net.actions.deployRaffleInstance({ minDelayLedgers: 3 });
      const { requestId } = await landed(bench.net.actions.drawInstance(contract));
      expect(await refusal(provide(contract, 5n, requestId))).toBe(64);
      bench.net.closeLedgers(2);
      expect(await refusal(provide(contract, 5n, requestId))).toBeUndefined();
      bench.net.closeLedgers(200);
      await landed(bench.net.actions.triggerFallback(contract, true));
      expect(await refusal(provide(contract, 5n, requestId))).toBe(23);
    });
  });
});
