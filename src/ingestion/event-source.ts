import type { ContractValue } from '../stellar/contract-value';

/** A contract event as `getEvents` tells it. It is stored before anyone looks inside. */
export interface RawEvent {
  /** TOID and event index (`0016010972359577600-0000000001`): unique, and in string order = chain order. */
  id: string;
  type: string;
  ledger: number;
  /** When that ledger closed, ISO 8601. */
  ledgerClosedAt: string;
  /** C… strkey. */
  contractId: string;
  /** 64 hex digits. */
  txHash: string;
  /** Base64 XDR, one ScVal each. */
  topic: string[];
  /** Base64 XDR of one ScVal. */
  value: string;
  transactionIndex?: number;
  operationIndex?: number;
}

export interface EventPage {
  /** In chain order. May be empty although more is to come: follow `cursor`. */
  events: RawEvent[];
  /** Where the next page begins. Null only from servers that predate cursors on empty pages. */
  cursor: string | null;
  latestLedger: number;
  oldestLedger: number;
  /** Unix seconds, as the server writes it. */
  latestLedgerCloseTime: string;
}

/** A ledger to begin at, or a cursor to go on from. Never both: the server refuses that. */
export type EventQuery = {
  /** At most 25: the client sends them as filters of five. */
  contractIds: readonly string[];
  limit: number;
} & ({ startLedger: number; cursor?: undefined } | { cursor: string; startLedger?: undefined });

/**
 * - page: what was found
 * - out_of_range: the answering server keeps only the ledgers from `oldest` to `latest`
 * - too_heavy: the server gave up on the amount of work; ask for less
 */
export type EventPageResult =
  | { kind: 'page'; page: EventPage }
  | { kind: 'out_of_range'; oldest: number; latest: number }
  | { kind: 'too_heavy' };

/** The chain, as far as ingestion looks at it. Both calls reject with a TransientError when no server answers. */
export interface EventSource {
  fetchEvents(query: EventQuery, signal: AbortSignal): Promise<EventPageResult>;
  /** Sequence number of the newest closed ledger. */
  getLatestLedger(signal: AbortSignal): Promise<number>;
}

/** Decodes one base64 XDR ScVal. @throws PermanentError when it is malformed. */
export type ContractValueDecoder = (base64: string) => ContractValue;
