import { deflateRawSync, inflateRawSync } from 'node:zlib';
import type { RawEvent } from './event-source';

/**
 * Rows are too small to compress well alone, so they share a dictionary of what every event's JSON repeats. It is part
 * of the file format: changing a byte of it makes every compressed row unreadable.
 */
const DICTIONARY = Buffer.from(
  '"transactionIndex":0,"operationIndex":0}"inSuccessfulContractCall":true,"AAAADwAAAA"AAAAEgAAAAEAAAAAAAAA' +
    '"AAAADgAAAA"AAAAEQAAAAEAAAA"AAAACgAAAAAAAAAA"AAAABQAAAAAAAAAAAAAADQAAACA"type":"contract","ledger":,' +
    '"ledgerClosedAt":"2026-:00Z","contractId":"C","txHash":"","topic":["","value":"{"id":"00',
);

export const serializeEvent = (event: RawEvent): string => JSON.stringify(event);

export const compressEventData = (text: string): Buffer =>
  deflateRawSync(text, { dictionary: DICTIONARY, level: 9 });

/** `data` as SQLite holds it: text, or a blob once compressed. */
export function readEventData(data: string | Buffer): RawEvent {
  const text = typeof data === 'string' ? data : inflateRawSync(data, { dictionary: DICTIONARY }).toString();
  return JSON.parse(text) as RawEvent;
}
