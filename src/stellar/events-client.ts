import { PermanentError } from '../platform/errors';
import { RpcNodeError, RpcRefusedError } from './rpc/rpc-errors';
import type { EventsReply, SorobanRpc } from './rpc/soroban-rpc';

/** A contract event as a node tells it, undecoded: one bad value must not cost its whole page. */
export interface RawEvent {
  /** TOID and event index (`0016010972359577600-0000000001`): unique, and in string order = chain order. */
  id: string;
  type: string;
  ledger: number;
  /** ISO 8601. */
  ledgerClosedAt: string;
  /** C…; empty for events of the system. */
  contractId: string;
  txHash: string;
  /** Base64 XDR, one ScVal each. */
  topic: string[];
  /** Base64 XDR of one ScVal. */
  value: string;
  transactionIndex?: number;
  operationIndex?: number;
}

export interface EventPage {
  events: RawEvent[];
  /** Where to go on, on empty pages too; null from servers that predate it. */
  cursor: string | null;
  latestLedger: number;
  oldestLedger: number;
  /** Unix seconds. */
  latestLedgerCloseTime: string;
}

export type EventQuery = {
  contractIds: readonly string[];
  limit: number;
} & ({ startLedger: number; cursor?: undefined } | { cursor: string; startLedger?: undefined });

export type EventPageResult =
  | { kind: 'page'; page: EventPage }
  /** The answering node keeps `oldest` to `latest`, and what was asked for lies outside: lost, or not there yet. */
  | { kind: 'out_of_range'; oldest: number; latest: number }
  /** The node gave up on the amount of work: ask for less. */
  | { kind: 'too_heavy' };

const CONTRACTS_PER_FILTER = 5;
const MAX_FILTERS = 5;
/** JSON-RPC code of a request that ran into the node's processing limit. */
const PROCESSING_LIMIT = -32001;
/** The event index in the cursor of a ledger that was read to its end. */
const END_OF_LEDGER = 0xffff_ffff;

/** `getEvents`, raw. */
export class EventsClient {
  constructor(private readonly rpc: SorobanRpc) {}

  /** @throws PermanentError TOO_MANY_CONTRACTS, RPC_REFUSED; TransientError when no node answers. */
  async fetchEvents(query: EventQuery, signal: AbortSignal): Promise<EventPageResult> {
    const params = {
      filters: filtersFor(query.contractIds),
      pagination: { limit: query.limit, ...(query.cursor !== undefined && { cursor: query.cursor }) },
      ...(query.startLedger !== undefined && { startLedger: query.startLedger }),
    };
    try {
      const { value } = await this.rpc.events(params, { signal, stickyKey: 'events' });
      return readPage(query, value);
    } catch (error) {
      if (error instanceof RpcNodeError && error.facts.rpcCode === PROCESSING_LIMIT)
        return { kind: 'too_heavy' };
      if (!(error instanceof RpcRefusedError)) throw error;
      return await this.explainRefusal(query, error, signal);
    }
  }

  /** Sequence number of the newest closed ledger. */
  async getLatestLedger(signal: AbortSignal): Promise<number> {
    return (await this.rpc.latestLedger({ signal, stickyKey: 'events' })).sequence;
  }

  /** Nodes refuse what is out of range with the code of any bad request. Their range tells the two apart. */
  private async explainRefusal(
    query: EventQuery,
    refusal: RpcRefusedError,
    signal: AbortSignal,
  ): Promise<EventPageResult> {
    const { oldest, latest } = await this.rpc.range(refusal.source, signal);
    const wanted = query.startLedger ?? positionOf(query.cursor)?.ledger;
    if (wanted === undefined || (wanted >= oldest && wanted <= latest)) throw refusal;
    return { kind: 'out_of_range', oldest, latest };
  }
}

function filtersFor(contractIds: readonly string[]) {
  if (contractIds.length > CONTRACTS_PER_FILTER * MAX_FILTERS) {
    throw new PermanentError(
      'TOO_MANY_CONTRACTS',
      `one query covers at most ${CONTRACTS_PER_FILTER * MAX_FILTERS} contracts`,
    );
  }
  const filters = [];
  for (let start = 0; start < contractIds.length; start += CONTRACTS_PER_FILTER) {
    filters.push({ type: 'contract', contractIds: contractIds.slice(start, start + CONTRACTS_PER_FILTER) });
  }
  return filters;
}

function readPage(query: EventQuery, reply: EventsReply): EventPageResult {
  const { oldestLedger: oldest, latestLedger: latest } = reply;
  const position = query.cursor === undefined ? undefined : positionOf(query.cursor);
  // A cursor of another node's is taken without a word and answered with empty pages for ever (stellar-rpc#313).
  if (position !== undefined && (position.next < oldest || position.ledger > latest)) {
    return { kind: 'out_of_range', oldest, latest };
  }
  return {
    kind: 'page',
    page: {
      events: reply.events,
      cursor: reply.cursor,
      latestLedger: latest,
      oldestLedger: oldest,
      latestLedgerCloseTime: String(reply.latestLedgerCloseTime),
    },
  };
}

/** The ledger of a cursor, and the first one that may hold events after it. */
function positionOf(cursor: string): { ledger: number; next: number } | undefined {
  const match = /^(\d{1,20})-(\d{1,10})$/.exec(cursor);
  if (match?.[1] === undefined || match[2] === undefined) return undefined;
  const ledger = Number(BigInt(match[1]) >> 32n);
  return { ledger, next: Number(match[2]) === END_OF_LEDGER ? ledger + 1 : ledger };
}
