import type { ContractValue } from '../stellar/contract-value';
import type { EventPageResult, EventQuery } from '../stellar/events-client';

export type { EventPage, EventPageResult, EventQuery, RawEvent } from '../stellar/events-client';

/** The chain, as far as ingestion looks at it. Both calls reject with a TransientError when no server answers. */
export interface EventSource {
  fetchEvents(query: EventQuery, signal: AbortSignal): Promise<EventPageResult>;
  /** Sequence number of the newest closed ledger. */
  getLatestLedger(signal: AbortSignal): Promise<number>;
}

/** Decodes one base64 XDR ScVal. @throws PermanentError when it is malformed. */
export type ContractValueDecoder = (base64: string) => ContractValue;
