import { createHash } from 'node:crypto';
import type { Keypair, xdr } from '@stellar/stellar-sdk';
import { Asset, hash as sha256 } from '@stellar/stellar-sdk';
import { applyOperations } from './apply-operations';
import type { LedgerClock } from './clock';
import { eventsOfLedger } from './ledger-events';
import type { AppliedTransaction, LedgerRecord } from './ledger-history';
import { LedgerHistory } from './ledger-history';
import { minimumResourceFee } from './resource-fee';
import { toVal } from './scval';
import type { LedgerInfo } from './soroban-host';
import { contractEventOf, SorobanHost } from './soroban-host';
import type { AccountRecord } from './state';
import { accountKey, LedgerState, StateOverlay } from './state';
import type { SystemTransaction } from './system-transaction';
import { signedSystemFrame } from './system-transaction';
import { checkTransaction } from './transaction-checks';
import type { TransactionFrame } from './transaction-frame';
import { baseFeeStroops } from './transaction-frame';
import type { AddResult } from './transaction-queue';
import { TransactionQueue } from './transaction-queue';
import { ledgerResult } from './transaction-result';

export interface LedgerOptions {
  networkPassphrase: string;
  firstLedger: number;
  /** Transactions that one ledger takes from the queue. */
  capacity: number;
}

/** Runs after each close, with what the queue gave up on. */
export type CloseListener = (record: LedgerRecord, dropped: TransactionFrame[]) => void;

/** Owns the state and closes ledgers; knows nothing of RPC. */
export class Ledger {
  readonly state = new LedgerState();
  readonly history: LedgerHistory;
  readonly queue = new TransactionQueue();
  readonly host: SorobanHost;
  /** Stroops per operation below which nothing is included: surge pricing. */
  surgeFeeRate: () => bigint = () => 0n;
  private readonly feeContract: string;
  private readonly closeListeners = new Set<CloseListener>();
  private systemTransactions: SystemTransaction[] = [];

  constructor(
    private readonly options: LedgerOptions,
    private readonly clock: LedgerClock,
  ) {
    this.history = new LedgerHistory(options.firstLedger);
    this.host = new SorobanHost(sha256(Buffer.from(options.networkPassphrase)));
    this.feeContract = Asset.native().contractId(options.networkPassphrase);
    this.append(
      { sequence: options.firstLedger, closeTimeSeconds: clock.nowSeconds() },
      '0'.repeat(64),
      [],
      0,
    );
  }

  onClose(listener: CloseListener): () => void {
    this.closeListeners.add(listener);
    return () => this.closeListeners.delete(listener);
  }

  account(publicKey: string): AccountRecord | undefined {
    const stored = this.state.read(accountKey(publicKey));
    return stored?.record.kind === 'account' ? stored.record : undefined;
  }

  submit(frame: TransactionFrame): AddResult {
    return this.queue.add(frame, {
      account: (publicKey) => this.account(publicKey),
      closeTimeSeconds: this.history.latest.closeTimeSeconds,
    });
  }

  /** Changes the state between ledgers, as genesis does: deployments, gifts, expiry set by a test. */
  edit(change: (overlay: StateOverlay, ledger: LedgerInfo) => void): void {
    const { sequence, closeTimeSeconds } = this.history.latest;
    const overlay = new StateOverlay(this.state, sequence);
    change(overlay, { sequence, closeTimeSeconds });
    this.commit(overlay);
  }

  /** Queues an operation of the network's own accounts; resolves when a ledger has it. */
  submitSystem(source: Keypair, operation: xdr.Operation): Promise<AppliedTransaction> {
    return new Promise((landed) => this.systemTransactions.push({ source, operation, landed }));
  }

  close(): LedgerRecord {
    const previous = this.history.latest;
    const info: LedgerInfo = {
      sequence: previous.sequence + 1,
      // Close times never go back, whatever the wall clock does.
      closeTimeSeconds: Math.max(previous.closeTimeSeconds, this.clock.nowSeconds()),
    };
    const applied: AppliedTransaction[] = [];
    const system = this.systemTransactions.splice(0);
    for (const transaction of system) {
      const sequence = this.account(transaction.source.publicKey())?.sequence ?? 0n;
      const frame = signedSystemFrame(transaction, sequence, this.options.networkPassphrase);
      applied.push(this.apply(frame, info, applied.length + 1));
    }
    const dropped = this.applyQueued(info, applied);
    const record = this.append(info, previous.hash, applied, applied.length - system.length);
    system.forEach(({ landed }, index) => {
      const entry = applied[index];
      if (entry) landed(entry);
    });
    for (const listener of this.closeListeners) listener(record, dropped);
    return record;
  }

  /** Adds to `applied`; returns what the queue gave up on. */
  private applyQueued(info: LedgerInfo, applied: AppliedTransaction[]): TransactionFrame[] {
    const invalid: TransactionFrame[] = [];
    const included: TransactionFrame[] = [];
    for (const frame of this.queue.candidates(this.options.capacity, this.surgeFeeRate())) {
      const rejection = checkTransaction(frame, { account: (publicKey) => this.account(publicKey), ...info });
      // Such a transaction is in no ledger: it is thrown out of the queue and banned.
      if (rejection) {
        invalid.push(frame);
        continue;
      }
      included.push(frame);
      applied.push(this.apply(frame, info, applied.length + 1));
    }
    this.queue.remove([...included, ...invalid]);
    return [...invalid, ...this.queue.shift()];
  }

  private append(
    info: LedgerInfo,
    previousHash: string,
    transactions: AppliedTransaction[],
    fromQueue: number,
  ): LedgerRecord {
    const digest = createHash('sha256').update(`${previousHash}:${info.sequence}:${info.closeTimeSeconds}`);
    for (const { hash } of transactions) digest.update(hash);
    const record: LedgerRecord = {
      ...info,
      previousHash,
      hash: digest.digest('hex'),
      fromQueue,
      transactions,
    };
    this.history.append(record, eventsOfLedger(transactions));
    return record;
  }

  private apply(frame: TransactionFrame, info: LedgerInfo, applicationOrder: number): AppliedTransaction {
    const fee = this.chargeFee(frame, info);
    const overlay = new StateOverlay(this.state, info.sequence);
    const outcome = applyOperations(frame, overlay, info, this.host);
    const changes = outcome.successful ? overlay.changes() : [];
    if (outcome.successful) this.commit(overlay);
    const feeEvent = contractEventOf(
      this.feeContract,
      [toVal.symbol('fee'), toVal.address(frame.feeSource)],
      toVal.i128(fee.charged),
    );
    return {
      hash: frame.hash,
      ...(frame.innerHash && { innerHash: frame.innerHash }),
      source: frame.source,
      feeSource: frame.feeSource,
      sequence: frame.sequence,
      operations: frame.operations.map(({ type }) => type),
      isSoroban: frame.isSoroban,
      ledger: info.sequence,
      closeTimeSeconds: info.closeTimeSeconds,
      applicationOrder,
      successful: outcome.successful,
      feeCharged: fee.charged,
      inclusionRate: fee.inclusion / frame.feeOperations,
      envelopeXdr: frame.envelope.toXDR('base64'),
      resultXdr: ledgerResult(frame, fee.charged, outcome.successful, outcome.results).toXDR('base64'),
      ...(outcome.successful && outcome.returnValue && { returnValue: outcome.returnValue }),
      contractEventsXdr: outcome.successful ? outcome.events.map((event) => event.toXDR('base64')) : [],
      feeEventXdr: feeEvent.toXDR('base64'),
      diagnosticEventsXdr: outcome.diagnosticEvents.map((event) => event.toXDR('base64')),
      changes,
    };
  }

  /** Takes the fee and uses the sequence number up, whatever becomes of the operations. */
  private chargeFee(frame: TransactionFrame, info: LedgerInfo): { charged: bigint; inclusion: bigint } {
    const surge = this.surgeFeeRate();
    const going = (surge > baseFeeStroops ? surge : baseFeeStroops) * frame.feeOperations;
    const inclusion = going < frame.inclusionFee ? going : frame.inclusionFee;
    const resources = frame.sorobanData ? minimumResourceFee(frame.sorobanData.resources()) : 0n;
    const charged = inclusion + resources;
    const overlay = new StateOverlay(this.state, info.sequence);
    const payer = overlay.account(frame.feeSource);
    if (payer) overlay.write({ ...payer, balance: payer.balance - charged });
    const source = overlay.account(frame.source);
    if (source) overlay.write({ ...source, sequence: frame.sequence });
    this.commit(overlay);
    return { charged, inclusion };
  }

  private commit(overlay: StateOverlay): void {
    for (const { key, after } of overlay.changes()) this.state.write(key, after, overlay.ledger);
  }
}
