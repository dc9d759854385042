import type { EventPageResult, EventQuery, EventSource, RawEvent } from '../../src/ingestion/event-source';
import { endOfLedger, parsePosition } from '../../src/ingestion/chain-position';

export const CONTRACT = 'CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSC';
const FIRST_LEDGER = 1_000;
const PER_LEDGER = 100;
const LATEST = 100_000_000;

/** The n-th event: a token transfer as a public network records it. */
function eventNumber(n: number): RawEvent {
  const ledger = FIRST_LEDGER + Math.floor(n / PER_LEDGER);
  const transaction = (n % PER_LEDGER) + 1;
  const toid = (BigInt(ledger) << 32n) | (BigInt(transaction) << 12n);
  return {
    id: `${toid.toString().padStart(19, '0')}-0000000000`,
    type: 'contract',
    ledger,
    ledgerClosedAt: '2026-07-21T18:01:10Z',
    contractId: CONTRACT,
    transactionIndex: transaction,
    operationIndex: 0,
    topic: [
      'AAAADwAAAAh0cmFuc2Zlcg==',
      'AAAAEgAAAAAAAAAAjnWZyariB+Ah9OPGy5WJe1t2Ks3gKsKGYsy7vmpJRIY=',
      'AAAAEgAAAAGu/2GlTlA4D83fxvERV0mWvvsyBPo+xfk3Guav6IgNZQ==',
      'AAAADgAAAAZuYXRpdmUAAA==',
    ],
    value: 'AAAACgAAAAAAAAAAAAAAALLQXgA=',
    txHash: 'a5c9247b77eb04c0d857934a2e988c408167976c8acbdf3d8acf64c44deb3beb',
  };
}

export const pageOfEvents = (from: number, count: number): RawEvent[] =>
  Array.from({ length: count }, (_, n) => eventNumber(from + n));

/** `total` events, made as they are asked for. */
export class EndlessChain implements EventSource {
  constructor(private readonly total: number) {}

  getLatestLedger(): Promise<number> {
    return Promise.resolve(LATEST);
  }

  closeTimeOf(): Promise<null> {
    return Promise.resolve(null);
  }

  fetchEvents({ cursor, limit }: EventQuery): Promise<EventPageResult> {
    const position = cursor === undefined ? null : parsePosition(cursor);
    const from = position === null ? 0 : (position.ledger - FIRST_LEDGER) * PER_LEDGER + position.transaction;
    const events = pageOfEvents(Math.min(from, this.total), Math.max(0, Math.min(limit, this.total - from)));
    const page = {
      events,
      cursor: events.at(-1)?.id ?? endOfLedger(LATEST),
      latestLedger: LATEST,
      oldestLedger: 1,
      latestLedgerCloseTime: '1784671886',
    };
    return Promise.resolve({ kind: 'page', page });
  }
}
