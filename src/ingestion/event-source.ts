import type { ContractValue } from '../stellar/contract-value';
import type { EventPageResult, EventQuery } from '../stellar/events-client';

export type { EventPage, EventPageResult, EventQuery, RawEvent } from '../stellar/events-client';

/** The chain, as far as ingestion looks at it. The first two reject with a TransientError when no server answers. */
export interface EventSource {
  fetchEvents(query: EventQuery, signal: AbortSignal): Promise<EventPageResult>;
  /** Sequence number of the newest closed ledger. */
  getLatestLedger(signal: AbortSignal): Promise<number>;
  /** When that ledger closed, Unix seconds; null where that can't be told. */
  closeTimeOf(ledger: number, signal: AbortSignal): Promise<string | null>;
}

/** Decodes one base64 XDR ScVal. @throws PermanentError when it is malformed. */
export type ContractValueDecoder = (base64: string) => ContractValue;
