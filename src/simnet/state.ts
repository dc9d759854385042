import { Address, Keypair, StrKey, xdr } from '@stellar/stellar-sdk';
import { memoized } from './memoized';

export interface AccountRecord {
  readonly kind: 'account';
  readonly accountId: string;
  /** Stroops. */
  readonly balance: bigint;
  readonly sequence: bigint;
}

export type Durability = 'persistent' | 'temporary';

export interface ContractDataRecord {
  readonly kind: 'contractData';
  readonly contractId: string;
  readonly key: xdr.ScVal;
  readonly value: xdr.ScVal;
  readonly durability: Durability;
  /** Last ledger in which the entry is live; past it a temporary entry is gone and a persistent one is archived. */
  readonly liveUntilLedger: number;
}

export type StateRecord = AccountRecord | ContractDataRecord;

/** Where a record is kept: the base64 XDR of its ledger key. */
export type StateKey = string;

export interface StoredRecord {
  readonly record: StateRecord;
  readonly lastModifiedLedger: number;
}

export interface StateReader {
  read(key: StateKey): StoredRecord | undefined;
}

export const accountIdOf = memoized((publicKey) => Keypair.fromPublicKey(publicKey).xdrAccountId());

const scAddressOf = memoized((contractId) => Address.fromString(contractId).toScAddress());

const durabilityOf = (durability: Durability): xdr.ContractDataDurability =>
  durability === 'persistent'
    ? xdr.ContractDataDurability.persistent()
    : xdr.ContractDataDurability.temporary();

export const accountKey = memoized((publicKey): StateKey =>
  Buffer.concat([Buffer.alloc(8), StrKey.decodeEd25519PublicKey(publicKey)]).toString('base64'),
);

export const contractDataLedgerKey = (
  contractId: string,
  key: xdr.ScVal,
  durability: Durability,
): xdr.LedgerKey =>
  xdr.LedgerKey.contractData(
    new xdr.LedgerKeyContractData({
      contract: scAddressOf(contractId),
      key,
      durability: durabilityOf(durability),
    }),
  );

export const contractDataKey = (contractId: string, key: xdr.ScVal, durability: Durability): StateKey =>
  contractDataLedgerKey(contractId, key, durability).toXDR('base64');

export const stateKeyOf = (record: StateRecord): StateKey =>
  record.kind === 'account'
    ? accountKey(record.accountId)
    : contractDataKey(record.contractId, record.key, record.durability);

export const ledgerEntryDataOf = (record: StateRecord): xdr.LedgerEntryData =>
  record.kind === 'account'
    ? xdr.LedgerEntryData.account(
        new xdr.AccountEntry({
          accountId: accountIdOf(record.accountId),
          balance: xdr.Int64.fromString(record.balance.toString()),
          seqNum: xdr.Int64.fromString(record.sequence.toString()),
          numSubEntries: 0,
          inflationDest: null,
          flags: 0,
          homeDomain: '',
          thresholds: Buffer.from([1, 0, 0, 0]),
          signers: [],
          ext: new xdr.AccountEntryExt(0),
        }),
      )
    : xdr.LedgerEntryData.contractData(
        new xdr.ContractDataEntry({
          ext: new xdr.ExtensionPoint(0),
          contract: scAddressOf(record.contractId),
          key: record.key,
          durability: durabilityOf(record.durability),
          val: record.value,
        }),
      );

export const ledgerEntryOf = (record: StateRecord, lastModifiedLedger: number): xdr.LedgerEntry =>
  new xdr.LedgerEntry({
    lastModifiedLedgerSeq: lastModifiedLedger,
    data: ledgerEntryDataOf(record),
    ext: new xdr.LedgerEntryExt(0),
  });

/** A lagging endpoint reads old versions; none lags further than this many ledgers. */
const keptLedgers = 128;

/** Every ledger entry, with its recent versions, so that a lagging endpoint can answer from the past. */
export class LedgerState implements StateReader {
  private readonly versions = new Map<StateKey, StoredRecord[]>();

  read(key: StateKey): StoredRecord | undefined {
    return this.versions.get(key)?.at(-1);
  }

  /** The state as it stood when that ledger closed. */
  asOf(ledger: number): StateReader {
    return {
      read: (key) => this.versions.get(key)?.findLast((version) => version.lastModifiedLedger <= ledger),
    };
  }

  write(key: StateKey, record: StateRecord, ledger: number): void {
    const stored: StoredRecord = { record, lastModifiedLedger: ledger };
    const history = this.versions.get(key);
    if (!history) {
      this.versions.set(key, [stored]);
      return;
    }
    if (history.at(-1)?.lastModifiedLedger === ledger) history.pop();
    history.push(stored);
    while ((history[1]?.lastModifiedLedger ?? ledger) < ledger - keptLedgers) history.shift();
  }
}

/** Uncommitted writes above a state: a transaction that fails is simply forgotten. */
export class StateOverlay implements StateReader {
  private readonly writes = new Map<StateKey, StateRecord>();
  private readonly reads = new Set<StateKey>();

  constructor(
    private readonly below: StateReader,
    /** The ledger that the writes are for. */
    readonly ledger: number,
  ) {}

  read(key: StateKey): StoredRecord | undefined {
    this.reads.add(key);
    const written = this.writes.get(key);
    return written ? { record: written, lastModifiedLedger: this.ledger } : this.below.read(key);
  }

  write(record: StateRecord): void {
    this.writes.set(stateKeyOf(record), record);
  }

  account(publicKey: string): AccountRecord | undefined {
    const stored = this.read(accountKey(publicKey));
    return stored?.record.kind === 'account' ? stored.record : undefined;
  }

  /** Keys that were read and never written: the read-only half of a footprint. */
  readOnlyKeys(): StateKey[] {
    return [...this.reads].filter((key) => !this.writes.has(key));
  }

  writtenKeys(): StateKey[] {
    return [...this.writes.keys()];
  }

  /** Before and after of each written entry, in the order of first write. */
  changes(): { key: StateKey; before?: StoredRecord; after: StateRecord }[] {
    return [...this.writes].map(([key, after]) => {
      const before = this.below.read(key);
      return before ? { key, before, after } : { key, after };
    });
  }
}
