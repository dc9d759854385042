import type { xdr } from '@stellar/stellar-sdk';
import type { StoredRecord, StateKey, StateRecord } from './state';

export interface LedgerRecord {
  sequence: number;
  /** Epoch seconds. */
  closeTimeSeconds: number;
  /** Hex. */
  hash: string;
  previousHash: string;
  /** How many of the transactions came from the queue; the others are the network's own. */
  fromQueue: number;
  transactions: AppliedTransaction[];
}

export interface EntryChange {
  key: StateKey;
  before?: StoredRecord;
  after: StateRecord;
}

/**
 * A transaction that is in a ledger, successful or not. XDR rests as base64: decoded it takes ten times the memory,
 * and most of it is never asked for.
 */
export interface AppliedTransaction {
  hash: string;
  /** Of what a fee bump wraps. */
  innerHash?: string;
  source: string;
  feeSource: string;
  sequence: bigint;
  operations: string[];
  isSoroban: boolean;
  ledger: number;
  closeTimeSeconds: number;
  /** From 1, as the node counts. */
  applicationOrder: number;
  successful: boolean;
  /** Stroops. */
  feeCharged: bigint;
  /** Stroops per operation paid for inclusion. */
  inclusionRate: bigint;
  envelopeXdr: string;
  resultXdr: string;
  returnValue?: xdr.ScVal;
  contractEventsXdr: string[];
  feeEventXdr: string;
  diagnosticEventsXdr: string[];
  changes: EntryChange[];
}

export interface StoredEvent {
  id: string;
  ledger: number;
  closeTimeSeconds: number;
  contractId: string;
  transactionIndex: number;
  operationIndex: number;
  inSuccessfulContractCall: boolean;
  /** Base64 XDR. */
  topics: string[];
  value: string;
  txHash: string;
}

/** First index whose item is not before the mark, in a list in id order. */
const lowerBound = (events: readonly StoredEvent[], isBefore: (event: StoredEvent) => boolean): number => {
  let low = 0;
  let high = events.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const event = events[middle];
    if (event && isBefore(event)) low = middle + 1;
    else high = middle;
  }
  return low;
};

/** All closed ledgers with their transactions and events, kept whole: endpoints decide how much of it they show. */
export class LedgerHistory {
  private readonly ledgers: LedgerRecord[] = [];
  private readonly byHash = new Map<string, AppliedTransaction>();
  private readonly eventLog: StoredEvent[] = [];

  constructor(readonly firstSequence: number) {}

  append(record: LedgerRecord, events: StoredEvent[]): void {
    this.ledgers.push(record);
    for (const applied of record.transactions) {
      this.byHash.set(applied.hash, applied);
      if (applied.innerHash) this.byHash.set(applied.innerHash, applied);
    }
    for (const event of events) this.eventLog.push(event);
  }

  get latest(): LedgerRecord {
    const record = this.ledgers.at(-1);
    if (!record) throw new Error('the simulated network has no genesis ledger yet');
    return record;
  }

  at(sequence: number): LedgerRecord | undefined {
    return this.ledgers[sequence - this.firstSequence];
  }

  /** By outer or inner hash. */
  transaction(hash: string): AppliedTransaction | undefined {
    return this.byHash.get(hash);
  }

  transactions(): AppliedTransaction[] {
    return this.ledgers.flatMap((ledger) => ledger.transactions);
  }

  events(): readonly StoredEvent[] {
    return this.eventLog;
  }

  /** Events after a cursor and before a ledger, in chain order, without copying the log. */
  *eventsAfter(cursor: string, endLedger: number): Generator<StoredEvent> {
    for (
      let index = lowerBound(this.eventLog, ({ id }) => id <= cursor);
      index < this.eventLog.length;
      index += 1
    ) {
      const event = this.eventLog[index];
      if (!event || event.ledger >= endLedger) return;
      yield event;
    }
  }
}
