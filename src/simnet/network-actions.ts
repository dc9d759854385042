import { Operation } from '@stellar/stellar-sdk';
import type { xdr } from '@stellar/stellar-sdk';
import { RecordingAuth } from './auth';
import type { CompactEvent } from './contracts/bridge';
import { compactEventVal } from './contracts/bridge';
import { verificationRequestVal } from './contracts/oracle';
import { raffleInstanceContract } from './contracts/raffle-instance';
import type { Genesis, RaffleInstanceInput } from './genesis';
import { raffleInstanceOf, stroopsPerLumen } from './genesis';
import type { Ledger } from './ledger';
import { fromVal, toVal } from './scval';

/** Where something stands on the chain. */
export interface Landed {
  txHash: string;
  ledger: number;
}

export interface VerificationRequestInput {
  manifestCid: string;
  mediaCid: string;
  /** G address. */
  requester: string;
}

export interface RaffleInput {
  prizeLumens: number;
  /** The event's own flag, which lifts the request's priority. */
  highPriority?: boolean;
}

/** Events in one transaction: about what the real network lets one emit. */
const eventsPerTransaction = 100;

const chunks = <T>(items: readonly T[]): T[][] =>
  Array.from({ length: Math.ceil(items.length / eventsPerTransaction) }, (_, index) =>
    items.slice(index * eventsPerTransaction, (index + 1) * eventsPerTransaction),
  );

const drawnRaffle = fromVal.struct<{ raffle_id: number; request_id: number }>({
  raffle_id: fromVal.u32,
  request_id: fromVal.u32,
});

/** What the admin of the contracts does to set work going. Each action resolves when a ledger holds it. */
export class NetworkActions {
  /** The first one is deployed at genesis. */
  private instances = 1;

  constructor(
    private readonly ledger: Ledger,
    private readonly genesis: Genesis,
  ) {}

  /** Emits `verification_requested` for each; answers with the request ids in the order given. */
  async emitVerificationRequests(
    requests: readonly VerificationRequestInput[],
  ): Promise<(Landed & { requestId: string })[]> {
    const landed = await Promise.all(
      chunks(requests).map((chunk) => {
        const fields = chunk.map(({ manifestCid, mediaCid, requester }) =>
          verificationRequestVal({ manifest_cid: manifestCid, media_cid: mediaCid, requester }),
        );
        return this.call(this.genesis.contracts.oracle, 'request_verifications', [toVal.vec(fields)]);
      }),
    );
    return landed.flatMap(({ returned, ...where }) =>
      fromVal
        .vec(fromVal.u64)(returned)
        .map((id) => ({ ...where, requestId: id.toString() })),
    );
  }

  async emitCompactEvents(events: readonly CompactEvent[]): Promise<Landed[]> {
    const landed = await Promise.all(
      chunks(events).map((chunk) =>
        this.call(this.genesis.contracts.bridge, 'log', [toVal.vec(chunk.map(compactEventVal))]),
      ),
    );
    return landed.map(({ txHash, ledger }) => ({ txHash, ledger }));
  }

  /** Creates raffles and asks for their randomness; answers in the order given. */
  async drawRaffles(
    raffles: readonly RaffleInput[],
  ): Promise<(Landed & { raffleId: number; requestId: number })[]> {
    const landed = await Promise.all(
      chunks(raffles).map((chunk) => {
        const orders = chunk.map(({ prizeLumens, highPriority = false }) =>
          toVal.struct({
            prize_amount: toVal.i128(BigInt(prizeLumens) * stroopsPerLumen),
            priority: toVal.bool(highPriority),
          }),
        );
        return this.call(this.genesis.contracts.raffle, 'draw_many', [toVal.vec(orders)]);
      }),
    );
    return landed.flatMap(({ returned, ...where }) =>
      fromVal
        .vec(drawnRaffle)(returned)
        .map((drawn) => ({
          ...where,
          raffleId: drawn.raffle_id,
          requestId: drawn.request_id,
        })),
    );
  }

  async cancelRaffle(raffleId: number): Promise<void> {
    await this.call(this.genesis.contracts.raffle, 'cancel_raffle', [toVal.u32(raffleId)]);
  }

  /** A new raffle as a contract of its own; there at once. */
  deployRaffleInstance(input: RaffleInstanceInput = {}): string {
    this.instances += 1;
    const contractId = this.ledger.host.contractIdFor(`raffle-instance-${this.instances}`);
    const { admin, oracle } = this.genesis;
    const contract = raffleInstanceContract(raffleInstanceOf(admin.publicKey(), oracle.publicKey(), input));
    this.ledger.edit((overlay, info) => this.ledger.host.deploy(contractId, contract, overlay, info));
    return contractId;
  }

  /** Starts the draw of an instance, which asks the oracle. */
  async drawInstance(contractId: string): Promise<Landed & { requestId: bigint }> {
    const { returned, ...where } = await this.call(contractId, 'finalize_raffle', []);
    return { ...where, requestId: fromVal.u64(returned) };
  }

  /** Deploys instances, has the factory tell of them, and starts their draws: two ledgers. In the order given. */
  async drawInstances(
    inputs: readonly RaffleInstanceInput[],
  ): Promise<(Landed & { contractId: string; requestId: bigint })[]> {
    const contractIds = inputs.map(({ prizeLumens = 1000 }) => this.deployRaffleInstance({ prizeLumens }));
    await Promise.all(
      chunks(contractIds).map((chunk) =>
        this.call(this.genesis.contracts.raffleFactory, 'announce', [toVal.vec(chunk.map(toVal.address))]),
      ),
    );
    return Promise.all(
      contractIds.map(async (contractId) => ({ contractId, ...(await this.drawInstance(contractId)) })),
    );
  }

  /** Rejects until 200 ledgers after the request. */
  async triggerFallback(contractId: string, doRefund: boolean): Promise<void> {
    const admin = toVal.address(this.genesis.admin.publicKey());
    await this.call(contractId, 'trigger_randomness_fallback', [admin, toVal.bool(doRefund)]);
  }

  async cancelInstance(contractId: string): Promise<void> {
    await this.call(contractId, 'cancel_raffle', []);
  }

  /** Trusts another signer's raw key and address as the genesis oracle is trusted. */
  async trustProvider(publicKey: string, rawKey: Uint8Array): Promise<void> {
    const { registry, oracle } = this.genesis.contracts;
    await Promise.all([
      this.call(registry, 'add_provider', [toVal.bytes(rawKey)]),
      this.call(oracle, 'add_provider', [toVal.address(publicKey)]),
    ]);
  }

  async distrustProvider(publicKey: string): Promise<void> {
    await this.call(this.genesis.contracts.oracle, 'remove_provider', [toVal.address(publicKey)]);
  }

  /** Invokes a contract in the admin's name; rejects when the call fails in its ledger. */
  async call(
    contractId: string,
    functionName: string,
    args: xdr.ScVal[],
  ): Promise<Landed & { returned: xdr.ScVal }> {
    const admin = this.genesis.admin.publicKey();
    const auth = new RecordingAuth(admin);
    auth.require(admin, { contractId, functionName, args });
    const operation = Operation.invokeContractFunction({
      contract: contractId,
      function: functionName,
      args,
      auth: auth.entries(),
    });
    const applied = await this.ledger.submitSystem(this.genesis.admin, operation);
    if (!applied.successful || !applied.returnValue) {
      throw new Error(`${functionName} failed: ${applied.resultXdr}`);
    }
    return { txHash: applied.hash, ledger: applied.ledger, returned: applied.returnValue };
  }
}
