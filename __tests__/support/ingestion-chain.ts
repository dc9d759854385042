import type { ContractValue } from '../../src/stellar/contract-value';
import { PermanentError, TransientError } from '../../src/platform/errors';
import { endOfLedger, parsePosition } from '../../src/ingestion/chain-position';
import type { EventPageResult, EventQuery, EventSource, RawEvent } from '../../src/ingestion/event-source';

export const CONTRACT_A = 'CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSC';
export const CONTRACT_B = 'CAAQCAIBAEAQCAIBAEAQCAIBAEAQCAIBAEAQCAIBAEAQCAIBAEAQC526';

/** Base64 XDR of an i128. */
const VALUE = 'AAAACgAAAAAAAAAAAAAAALLQXgA=';

const symbolXdr = (name: string): string => {
  const padded = Math.ceil(name.length / 4) * 4;
  const bytes = Buffer.alloc(8 + padded);
  bytes.writeUInt32BE(15, 0);
  bytes.writeUInt32BE(name.length, 4);
  bytes.write(name, 8);
  return bytes.toString('base64');
};

const SYMBOL = 15;
const I128 = 10;

/** Decodes what {@link makeEvent} writes, without the weight of the SDK: child processes have to start fast. */
export function decodeSymbolsOnly(base64: string): ContractValue {
  const bytes = Buffer.from(base64, 'base64');
  const type = bytes.length >= 8 ? bytes.readUInt32BE(0) : -1;
  if (type === I128 && bytes.length === 20) return { type: 'i128', value: bytes.readBigInt64BE(12) };
  if (type !== SYMBOL) throw new PermanentError('MALFORMED_CONTRACT_VALUE', 'neither a symbol nor an i128');
  return { type: 'symbol', value: bytes.subarray(8, 8 + bytes.readUInt32BE(4)).toString() };
}

export interface EventParts {
  ledger: number;
  transaction?: number;
  index?: number;
  contractId?: string;
  topics?: string[];
  value?: string;
}

export function makeEvent(parts: EventParts): RawEvent {
  const {
    ledger,
    transaction = 1,
    index = 0,
    contractId = CONTRACT_A,
    topics = ['transfer'],
    value = VALUE,
  } = parts;
  const toid = (BigInt(ledger) << 32n) | (BigInt(transaction) << 12n);
  return {
    id: `${toid.toString().padStart(19, '0')}-${String(index).padStart(10, '0')}`,
    type: 'contract',
    ledger,
    ledgerClosedAt: new Date(1_784_000_000_000 + ledger * 5_000).toISOString(),
    contractId,
    txHash: `${ledger.toString(16)}${transaction.toString(16)}`.padStart(64, '0'),
    topic: topics.map(symbolXdr),
    value,
  };
}

/** `count` events, `perLedger` a ledger, from `firstLedger` on, in turn of the contracts given. */
export function makeEvents(
  count: number,
  {
    firstLedger = 100,
    perLedger = 10,
    contracts = [CONTRACT_A],
  }: { firstLedger?: number; perLedger?: number; contracts?: string[] } = {},
): RawEvent[] {
  return Array.from({ length: count }, (_, n) =>
    makeEvent({
      ledger: firstLedger + Math.floor(n / perLedger),
      transaction: (n % perLedger) + 1,
      contractId: contracts[n % contracts.length] ?? CONTRACT_A,
    }),
  );
}

export type Fault =
  { kind: 'down' } | { kind: 'too_heavy' } | { kind: 'lagging'; by: number } | { kind: 'reordered' };

/** A chain with a retention window, paged the way RPC servers page, that can be told to misbehave. */
export class ScriptedChain implements EventSource {
  readonly queries: EventQuery[] = [];
  /** Taken one a request; null is a request that goes well. */
  readonly faults: (Fault | null)[] = [];
  /** Unix seconds at which the newest ledger closed. */
  latestCloseTime = 1_784_671_886;
  scanLedgers = 10_000;
  maxLimit = 10_000;

  constructor(
    readonly events: RawEvent[],
    public latest: number,
    public oldest = 1,
  ) {}

  add(...events: RawEvent[]): void {
    this.events.push(...events);
    this.events.sort((a, b) => (a.id < b.id ? -1 : 1));
    this.latest = Math.max(this.latest, ...events.map(({ ledger }) => ledger));
  }

  getLatestLedger(): Promise<number> {
    return Promise.resolve(this.latest);
  }

  /** Ledgers of five seconds each. */
  closeTimeOf(ledger: number): Promise<string | null> {
    if (ledger < this.oldest || ledger > this.latest) return Promise.resolve(null);
    return Promise.resolve(String(this.latestCloseTime - (this.latest - ledger) * 5));
  }

  fetchEvents(query: EventQuery): Promise<EventPageResult> {
    this.queries.push(query);
    const fault = this.faults.shift() ?? null;
    if (fault?.kind === 'down') return Promise.reject(new TransientError('RPC_DOWN', 'no server answers'));
    if (fault?.kind === 'too_heavy') return Promise.resolve({ kind: 'too_heavy' });
    return Promise.resolve(
      this.answer(query, fault?.kind === 'lagging' ? this.latest - fault.by : this.latest),
    );
  }

  private answer(query: EventQuery, latest: number): EventPageResult {
    const { oldest } = this;
    const position = query.cursor === undefined ? null : parsePosition(query.cursor);
    const begin = query.startLedger ?? position?.ledger ?? 0;
    const readFrom = position !== null && position.transaction === 0xfffff ? begin + 1 : begin;
    if (begin < 1 || readFrom < oldest || begin > latest) {
      return { kind: 'out_of_range', oldest, latest, latestLedgerCloseTime: String(this.latestCloseTime) };
    }
    const end = Math.min(latest, readFrom + this.scanLedgers - 1);
    const limit = Math.min(query.limit, this.maxLimit);
    const found = this.events.filter(
      ({ id, ledger, contractId }) =>
        query.contractIds.includes(contractId) &&
        ledger >= readFrom &&
        ledger <= end &&
        ledger >= oldest &&
        (query.cursor === undefined || id > query.cursor),
    );
    const events = found.slice(0, limit);
    const cursor = found.length >= limit ? (events.at(-1)?.id ?? endOfLedger(end)) : endOfLedger(end);
    return {
      kind: 'page',
      page: {
        events,
        cursor,
        latestLedger: latest,
        oldestLedger: oldest,
        latestLedgerCloseTime: String(this.latestCloseTime),
      },
    };
  }
}
