import { PermanentError } from '../platform/errors';
import type { Endpoint } from './rpc/endpoint';
import { RpcNodeError, RpcRefusedError } from './rpc/rpc-errors';
import type { Ask, EventsReply, SorobanRpc } from './rpc/soroban-rpc';

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
  /** As the node sent them: what should be an event may be anything. */
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
  | { kind: 'out_of_range'; oldest: number; latest: number; latestLedgerCloseTime?: string }
  /** The node gave up on the amount of work: ask for less. */
  | { kind: 'too_heavy' };

interface LedgerRange {
  oldest: number;
  latest: number;
  /** Unix seconds, of nodes that tell it. */
  latestLedgerCloseTime?: string;
}
type OutOfRange = Extract<EventPageResult, { kind: 'out_of_range' }>;
type Located = OutOfRange & { endpoint: Endpoint };

/** One node's cursors and pages fit together best. */
const STICKY = 'events';
const CONTRACTS_PER_FILTER = 5;
const MAX_FILTERS = 5;
/** JSON-RPC code of a request that ran into the node's processing limit. */
const PROCESSING_LIMIT = -32001;
/** The event index in the cursor of a ledger that was read to its end. */
const END_OF_LEDGER = 0xffff_ffff;

/** `getEvents`, raw. */
export class EventsClient {
  constructor(private readonly rpc: SorobanRpc) {}

  /**
   * A node that doesn't hold what is asked for is no proof that none does: the others are asked before that is said.
   * @throws PermanentError TOO_MANY_CONTRACTS, RPC_REFUSED; TransientError when no node answers.
   */
  async fetchEvents(query: EventQuery, signal: AbortSignal): Promise<EventPageResult> {
    const asked = await this.ask(query, { signal, stickyKey: STICKY });
    if (asked.kind !== 'out_of_range') return asked;
    const ranges: LedgerRange[] = [asked];
    for (const endpoint of this.rpc.pool.witnesses()) {
      if (endpoint === asked.endpoint || !endpoint.isClosed) continue;
      const range = await this.rangeOf(endpoint, signal);
      if (range === null) continue;
      ranges.push(range);
      if (!holds(range, query)) continue;
      const other = await this.ask(query, { signal, stickyKey: STICKY, only: endpoint });
      if (other.kind !== 'out_of_range') return other;
    }
    return { kind: 'out_of_range', ...bestOf(ranges, query) };
  }

  /** Sequence number of the newest closed ledger. */
  async getLatestLedger(signal: AbortSignal): Promise<number> {
    return (await this.rpc.latestLedger({ signal, stickyKey: STICKY })).sequence;
  }

  /** When that ledger closed, Unix seconds; null where the node that tells the events can't say. */
  async closeTimeOf(ledger: number, signal: AbortSignal): Promise<string | null> {
    try {
      const closeTime = await this.rpc.closeTimeOf(ledger, { signal, stickyKey: STICKY, once: true });
      return closeTime === null ? null : String(closeTime);
    } catch {
      signal.throwIfAborted();
      return null;
    }
  }

  private async ask(query: EventQuery, ask: Ask): Promise<Exclude<EventPageResult, OutOfRange> | Located> {
    const params = {
      filters: filtersFor(query.contractIds),
      pagination: { limit: query.limit, ...(query.cursor !== undefined && { cursor: query.cursor }) },
      ...(query.startLedger !== undefined && { startLedger: query.startLedger }),
    };
    try {
      const { value, endpoint } = await this.rpc.events(params, ask);
      const result = readPage(query, value);
      return result.kind === 'out_of_range' ? { ...result, endpoint } : result;
    } catch (error) {
      if (error instanceof RpcNodeError && error.facts.rpcCode === PROCESSING_LIMIT)
        return { kind: 'too_heavy' };
      if (!(error instanceof RpcRefusedError)) throw error;
      // Nodes refuse what is out of range with the code of any bad request. Their range tells the two apart.
      const range = await this.rpc.range(error.source, ask.signal);
      if (wantedLedger(query) === undefined || holds(range, query)) throw error;
      return { kind: 'out_of_range', ...range, endpoint: error.source };
    }
  }

  private async rangeOf(endpoint: Endpoint, signal: AbortSignal): Promise<LedgerRange | null> {
    try {
      return await this.rpc.range(endpoint, signal);
    } catch {
      signal.throwIfAborted();
      return null;
    }
  }
}

const wantedLedger = (query: EventQuery): number | undefined =>
  query.startLedger ?? positionOf(query.cursor)?.ledger;

function holds({ oldest, latest }: LedgerRange, query: EventQuery): boolean {
  const wanted = wantedLedger(query);
  return wanted !== undefined && wanted >= oldest && wanted <= latest;
}

/** Of nodes that have come as far as asked for, the one that lost least; without any, the one that has come furthest. */
function bestOf(ranges: readonly LedgerRange[], query: EventQuery): LedgerRange {
  const wanted = wantedLedger(query) ?? 0;
  const [best] = ranges.toSorted(
    (a, b) =>
      Number(b.latest >= wanted) - Number(a.latest >= wanted) ||
      (a.latest >= wanted ? a.oldest - b.oldest : b.latest - a.latest),
  );
  const { oldest, latest, latestLedgerCloseTime } = best as LedgerRange;
  return { oldest, latest, ...(latestLedgerCloseTime === undefined ? {} : { latestLedgerCloseTime }) };
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
  const latestLedgerCloseTime = String(reply.latestLedgerCloseTime);
  const position = query.cursor === undefined ? undefined : positionOf(query.cursor);
  // A cursor of another node's is taken without a word and answered with empty pages for ever (stellar-rpc#313).
  if (position !== undefined && (position.next < oldest || position.ledger > latest)) {
    return { kind: 'out_of_range', oldest, latest, latestLedgerCloseTime };
  }
  return {
    kind: 'page',
    page: {
      events: reply.events,
      cursor: reply.cursor,
      latestLedger: latest,
      oldestLedger: oldest,
      latestLedgerCloseTime,
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
