import { Operation, scValToNative } from '@stellar/stellar-sdk';
import type { xdr } from '@stellar/stellar-sdk';
import { RecordingAuth } from './auth';
import type { CompactEvent } from './contracts/bridge';
import { compactEventVal } from './contracts/bridge';
import { verificationRequestVal } from './contracts/oracle';
import type { Genesis } from './genesis';
import type { Ledger } from './ledger';
import { toVal } from './scval';

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

/** Events in one transaction: about what the real network lets one emit. */
const eventsPerTransaction = 100;

const chunks = <T>(items: readonly T[]): T[][] =>
  Array.from({ length: Math.ceil(items.length / eventsPerTransaction) }, (_, index) =>
    items.slice(index * eventsPerTransaction, (index + 1) * eventsPerTransaction),
  );

/** What the admin of the contracts does to set work going. Each action resolves when a ledger holds it. */
export class NetworkActions {
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
      (scValToNative(returned) as bigint[]).map((id) => ({ ...where, requestId: id.toString() })),
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
      throw new Error(`${functionName} failed: ${applied.result.toXDR('base64')}`);
    }
    return { txHash: applied.frame.hash, ledger: applied.ledger, returned: applied.returnValue };
  }
}
