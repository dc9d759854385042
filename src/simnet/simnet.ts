import type { Keypair, xdr } from '@stellar/stellar-sdk';
import type { Clock } from '../platform/clock';
import { systemClock } from '../platform/clock';
import { LedgerClock } from './clock';
import type { VerifyProof } from './contracts/raffle-proof';
import { verifyRaffleProof } from './contracts/raffle-proof';
import type { FaultPlanInput } from './fault-rules';
import { FaultEngine } from './faults';
import type { ContractIds, Genesis } from './genesis';
import { createGenesis, fundedLumens, stroopsPerLumen } from './genesis';
import { IpfsGateway } from './ipfs-gateway';
import { Ledger } from './ledger';
import type { LedgerRecord } from './ledger-history';
import { NetworkActions } from './network-actions';
import { Observer } from './observer';
import type { SimnetOptions, SimnetSettings } from './options';
import { simnetOptionsSchema } from './options';
import type { Listeners } from './simnet-listeners';
import { openListeners } from './simnet-listeners';
import { instanceKey } from './soroban-host';
import { contractDataKey } from './state';
import { SimnetStats } from './stats';

/** What another process needs to know; plain JSON. The secrets are of worthless keys. */
export interface SimnetFacts {
  rpcUrls: string[];
  /** Append `/{cid}`. */
  ipfsUrl: string;
  observerUrl: string;
  /** `POST {controlUrl}/raffles` draws raffles. */
  controlUrl: string;
  friendbotUrl: string;
  networkPassphrase: string;
  contracts: ContractIds;
  oraclePublicKey: string;
  oracleSecret: string;
  /** Hex; the code measurement that the registry trusts. */
  teeHash: string;
  fundedSecrets: string[];
}

export interface SimnetHooks {
  /** Wall clock behind the close times. */
  clock?: Pick<Clock, 'now'>;
  /** Judges deliveries to the contract with many raffles. */
  verifyProof?: VerifyProof;
}

/** A running simulated network. */
export class Simnet {
  readonly ledger: Ledger;
  readonly gateway: IpfsGateway;
  readonly observer: Observer;
  readonly actions: NetworkActions;
  private readonly counters = new SimnetStats();
  private readonly faults = new FaultEngine();
  private readonly clock: LedgerClock;
  private readonly genesis: Genesis;
  private listeners: Listeners | undefined;
  private timer: NodeJS.Timeout | undefined;

  private constructor(
    private readonly settings: SimnetSettings,
    { clock = systemClock, verifyProof = verifyRaffleProof }: SimnetHooks,
  ) {
    this.clock = new LedgerClock(clock);
    this.ledger = new Ledger(
      {
        networkPassphrase: settings.networkPassphrase,
        firstLedger: settings.firstLedger,
        capacity: settings.ledgerCapacity,
      },
      this.clock,
    );
    this.ledger.surgeFeeRate = () => this.faults.surgeFeeRate();
    this.genesis = createGenesis(this.ledger, settings, verifyProof);
    this.gateway = new IpfsGateway((cid) => this.faults.next({ surface: 'ipfs', endpoint: 0, cid }));
    this.observer = new Observer(this.ledger, this.genesis.contracts, this.counters, this.faults, {
      requested: settings.raffleRequestedTopic,
      received: settings.raffleReceivedTopic,
    });
    this.actions = new NetworkActions(this.ledger, this.genesis);
    this.faults.set(settings.faults);
  }

  /** Rejects with a ZodError for wrong options and with the listener's error when a port is taken. */
  static async start(options: SimnetOptions = {}, hooks: SimnetHooks = {}): Promise<Simnet> {
    const simnet = new Simnet(simnetOptionsSchema.parse(options), hooks);
    await simnet.open();
    return simnet;
  }

  get rpcUrls(): string[] {
    return this.opened.rpc.map(({ origin }) => origin);
  }

  /** Append `/{cid}`. */
  get ipfsUrl(): string {
    return `${this.opened.gateway.origin}/ipfs`;
  }

  get observerUrl(): string {
    return `${this.opened.gateway.origin}/observer`;
  }

  get controlUrl(): string {
    return `${this.opened.gateway.origin}/simnet`;
  }

  get networkPassphrase(): string {
    return this.settings.networkPassphrase;
  }

  get contracts(): ContractIds {
    return this.genesis.contracts;
  }

  get oracleKeypair(): Keypair {
    return this.genesis.oracle;
  }

  get adminKeypair(): Keypair {
    return this.genesis.admin;
  }

  get fundedKeypairs(): readonly Keypair[] {
    return this.genesis.funded;
  }

  get teeHash(): string {
    return this.genesis.teeHash;
  }

  get latestLedger(): number {
    return this.ledger.history.latest.sequence;
  }

  facts(): SimnetFacts {
    return {
      rpcUrls: this.rpcUrls,
      ipfsUrl: this.ipfsUrl,
      observerUrl: this.observerUrl,
      controlUrl: this.controlUrl,
      friendbotUrl: `${this.opened.gateway.origin}/friendbot`,
      networkPassphrase: this.networkPassphrase,
      contracts: this.contracts,
      oraclePublicKey: this.genesis.oracle.publicKey(),
      oracleSecret: this.genesis.oracle.secret(),
      teeHash: this.teeHash,
      fundedSecrets: this.genesis.funded.map((keypair) => keypair.secret()),
    };
  }

  /** Creates the account or adds to it, at once and without a transaction. */
  fund(publicKey: string, lumens: bigint = fundedLumens): void {
    const account = this.ledger.account(publicKey);
    const amount = lumens * stroopsPerLumen;
    this.ledger.edit((overlay, { sequence }) =>
      overlay.write({
        kind: 'account',
        accountId: publicKey,
        balance: (account?.balance ?? 0n) + amount,
        sequence: account?.sequence ?? BigInt(sequence) << 32n,
      }),
    );
  }

  closeLedger(): LedgerRecord {
    return this.ledger.close();
  }

  closeLedgers(count: number): void {
    for (let closed = 0; closed < count; closed += 1) this.ledger.close();
  }

  /** Moves the network's clock forward; the next ledger closes that much later. */
  advanceClock(ms: number): void {
    this.clock.advanceMs(ms);
  }

  onLedger(listener: (record: LedgerRecord) => void): () => void {
    return this.ledger.onClose(listener);
  }

  /** Resolves once that ledger has closed, at once when it has. */
  waitForLedger(sequence: number): Promise<void> {
    if (this.latestLedger >= sequence) return Promise.resolve();
    return new Promise((resolve) => {
      const stop = this.onLedger((record) => {
        if (record.sequence < sequence) return;
        stop();
        resolve();
      });
    });
  }

  setFaults(plan: FaultPlanInput): void {
    this.faults.set(plan);
  }

  /** Lets an entry of a contract run out, so that it has to be restored; its instance when no key is given. */
  archive(contractId: string, key: xdr.ScVal = instanceKey): void {
    const record = this.ledger.state.read(contractDataKey(contractId, key, 'persistent'))?.record;
    if (record?.kind !== 'contractData') throw new Error('no such contract entry');
    this.ledger.edit((overlay, { sequence }) => overlay.write({ ...record, liveUntilLedger: sequence - 1 }));
  }

  /** Ends the timer and all connections. What was in memory is gone. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.listeners?.close();
  }

  private get opened(): Listeners {
    if (!this.listeners) throw new Error('the simulated network is not listening');
    return this.listeners;
  }

  private async open(): Promise<void> {
    const { ledger, genesis, faults, gateway, observer, actions, counters: stats, settings } = this;
    this.listeners = await openListeners({
      ...{ ledger, genesis, faults, gateway, observer, actions, stats, settings },
      facts: () => this.facts(),
    });
    if (settings.ledgerMs > 0) this.timer = setInterval(() => this.ledger.close(), settings.ledgerMs);
  }
}

export const startSimnet = (options: SimnetOptions = {}, hooks: SimnetHooks = {}): Promise<Simnet> =>
  Simnet.start(options, hooks);
