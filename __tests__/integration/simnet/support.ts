import type { Keypair, Transaction, xdr } from '@stellar/stellar-sdk';
import { Address, BASE_FEE, Operation, nativeToScVal, rpc, TransactionBuilder } from '@stellar/stellar-sdk';
import type { Simnet, SimnetOptions } from '../../../src/simnet';
import { startSimnet } from '../../../src/simnet';

/** A clock that stands still until a test moves it. */
export class TestClock {
  private ms = Date.parse('2026-03-01T12:00:00Z');

  now(): number {
    return this.ms;
  }

  seconds(): number {
    return Math.floor(this.ms / 1000);
  }

  advanceSeconds(seconds: number): void {
    this.ms += seconds * 1000;
  }
}

/** A network whose ledgers close by hand, with the unmodified SDK client on each endpoint. */
export class Bench {
  readonly servers: rpc.Server[];

  private constructor(
    readonly net: Simnet,
    readonly clock: TestClock,
  ) {
    this.servers = net.rpcUrls.map((url) => new rpc.Server(url, { allowHttp: true }));
  }

  static async start(options: SimnetOptions = {}): Promise<Bench> {
    const clock = new TestClock();
    return new Bench(await startSimnet({ ledgerMs: 0, fundedAccounts: 4, ...options }, { clock }), clock);
  }

  get server(): rpc.Server {
    return this.servers[0]!;
  }

  funded(index: number): Keypair {
    return this.net.fundedKeypairs[index]!;
  }

  /** Raw JSON-RPC, for answers that the SDK would hide. */
  async call(
    method: string,
    params?: unknown,
    endpoint = 0,
  ): Promise<{ result?: never; error?: { code: number; message: string } }> {
    const response = await fetch(this.net.rpcUrls[endpoint]!, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    });
    return (await response.json()) as { result?: never; error?: { code: number; message: string } };
  }

  async build(
    source: Keypair,
    operation: xdr.Operation,
    { fee = BASE_FEE, minTime = 0, maxTime = this.clock.seconds() + 300, sequenceOffset = 0n } = {},
  ): Promise<Transaction> {
    const account = await this.server.getAccount(source.publicKey());
    for (let step = 0n; step < sequenceOffset; step += 1n) account.incrementSequenceNumber();
    return new TransactionBuilder(account, { fee, networkPassphrase: this.net.networkPassphrase })
      .addOperation(operation)
      .setTimebounds(minTime, maxTime)
      .build();
  }

  async prepared(
    source: Keypair,
    operation: xdr.Operation,
    signers: Keypair[] = [source],
  ): Promise<Transaction> {
    const transaction = await this.server.prepareTransaction(await this.build(source, operation));
    transaction.sign(...signers);
    return transaction;
  }

  /** Sends, closes a ledger, and reads the transaction back. */
  async land(
    transaction: Parameters<rpc.Server['sendTransaction']>[0],
  ): Promise<rpc.Api.GetTransactionResponse> {
    const sent = await this.server.sendTransaction(transaction);
    if (sent.status !== 'PENDING') throw new Error(`not accepted: ${sent.status}`);
    this.net.closeLedger();
    return this.server.getTransaction(sent.hash);
  }

  /** `source` is the operation's own source account, where the transaction has another. */
  mintOperation(manifestHash: string, source?: string): xdr.Operation {
    const text = ['symbol', 'string'] as const;
    return Operation.invokeContractFunction({
      contract: this.net.contracts.provenance,
      function: 'mint',
      args: [
        Address.fromString(this.funded(3).publicKey()).toScVal(),
        nativeToScVal(
          { storage_id: 'bafy', manifest_hash: manifestHash, attestation_hash: 'att' },
          { type: { storage_id: text, manifest_hash: text, attestation_hash: text } },
        ),
      ],
      ...(source && { source }),
    });
  }

  prepareMint(manifestHash: string): Promise<Transaction> {
    return this.prepared(this.net.oracleKeypair, this.mintOperation(manifestHash));
  }

  stop(): Promise<void> {
    return this.net.stop();
  }
}
