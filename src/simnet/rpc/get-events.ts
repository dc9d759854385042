import { StrKey, xdr } from '@stellar/stellar-sdk';
import { z } from 'zod';
import { endOfLedger, eventId, parseEventId } from '../event-id';
import type { StoredEvent } from '../ledger-history';
import type { RpcContext, RpcMethod } from './rpc-context';
import { invalidParams, RpcFailure, rpcErrorCodes } from './rpc-context';

export const ledgerScanLimit = 10_000;
const maxLimit = 10_000;
const defaultLimit = 100;
const maxFilters = 5;
const maxContractIds = 5;
const maxTopics = 5;
const maxSegments = 4;

const paramsSchema = z.object({
  startLedger: z.int().nonnegative().optional(),
  endLedger: z.int().nonnegative().optional(),
  filters: z
    .array(
      z.object({
        type: z.string().optional(),
        contractIds: z.array(z.string()).optional(),
        topics: z.array(z.array(z.string())).optional(),
      }),
    )
    .nullish(),
  pagination: z.object({ cursor: z.string().optional(), limit: z.int().nonnegative().optional() }).optional(),
  xdrFormat: z.string().optional(),
});
type Params = z.infer<typeof paramsSchema>;
type Filter = NonNullable<Params['filters']>[number];

const isScVal = (segment: string): boolean => {
  try {
    xdr.ScVal.fromXDR(segment, 'base64');
    return true;
  } catch {
    return false;
  }
};

const topicProblem = (topic: string[]): string | undefined => {
  const isOpenEnded = topic.at(-1) === '**';
  const segments = isOpenEnded ? topic.slice(0, -1) : topic;
  if (topic.length === 0) return 'topic must have at least one segment';
  if (segments.length > maxSegments) return `topic cannot have more than ${maxSegments} segments`;
  if (segments.includes('**')) return "wildcard '**' is only allowed as the last segment";
  return segments.every((segment) => segment === '*' || isScVal(segment))
    ? undefined
    : 'segment is no base64 ScVal';
};

const filterProblem = (filter: Filter): string | undefined => {
  if (
    filter.type !== undefined &&
    !filter.type.split(',').every((type) => type === 'contract' || type === 'system')
  ) {
    return "filter type invalid: if set, type must be either 'system' or 'contract'";
  }
  const { contractIds = [], topics = [] } = filter;
  if (contractIds.length > maxContractIds) return `maximum ${maxContractIds} contract IDs per filter`;
  const bad = contractIds.findIndex((id) => !StrKey.isValidContract(id));
  if (bad >= 0) return `contract ID ${bad + 1} invalid`;
  if (topics.length > maxTopics) return `maximum ${maxTopics} topics per filter`;
  for (const [index, topic] of topics.entries()) {
    const problem = topicProblem(topic);
    if (problem) return `topic ${index + 1} invalid: ${problem}`;
  }
  return undefined;
};

const checkedParams = (params: unknown): Params => {
  const parsed = paramsSchema.safeParse(params ?? {});
  if (!parsed.success) throw invalidParams(z.prettifyError(parsed.error));
  const { startLedger = 0, endLedger = 0, filters, pagination, xdrFormat } = parsed.data;
  if (xdrFormat !== undefined && xdrFormat !== '' && xdrFormat !== 'base64') {
    throw invalidParams('the simulated network answers in base64 only');
  }
  if (pagination?.cursor !== undefined) {
    if (startLedger !== 0 || endLedger !== 0)
      throw invalidParams('ledger ranges and cursor cannot both be set');
  } else {
    if (startLedger === 0) throw invalidParams('startLedger must be positive');
    if (endLedger !== 0 && endLedger < startLedger)
      throw invalidParams('startLedger must be less than endLedger');
  }
  if ((pagination?.limit ?? 0) > maxLimit) throw invalidParams(`limit must not exceed ${maxLimit}`);
  if ((filters?.length ?? 0) > maxFilters) throw invalidParams(`maximum ${maxFilters} filters per request`);
  for (const [index, filter] of (filters ?? []).entries()) {
    const problem = filterProblem(filter);
    if (problem) throw invalidParams(`filter ${index + 1} invalid: ${problem}`);
  }
  return parsed.data;
};

const matchesTopic = (topic: string[], segments: string[]): boolean => {
  const isOpenEnded = topic.at(-1) === '**';
  const wanted = isOpenEnded ? topic.slice(0, -1) : topic;
  const countFits = isOpenEnded ? segments.length >= wanted.length : segments.length === wanted.length;
  return countFits && wanted.every((segment, index) => segment === '*' || segment === segments[index]);
};

const matchesFilter = ({ type, contractIds = [], topics = [] }: Filter, event: StoredEvent): boolean =>
  (type === undefined || type.split(',').includes('contract')) &&
  (contractIds.length === 0 || contractIds.includes(event.contractId)) &&
  (topics.length === 0 || topics.some((topic) => matchesTopic(topic, event.topics)));

const eventInfo = (event: StoredEvent) => ({
  type: 'contract',
  ledger: event.ledger,
  ledgerClosedAt: new Date(event.closeTimeSeconds * 1000).toISOString().replace('.000Z', 'Z'),
  contractId: event.contractId,
  id: event.id,
  transactionIndex: event.transactionIndex,
  operationIndex: event.operationIndex,
  inSuccessfulContractCall: event.inSuccessfulContractCall,
  topic: event.topics,
  value: event.value,
  txHash: event.txHash,
});

/** The first ledger to look at and the position after which events count. */
const startOf = (params: Params): { ledger: number; after: string } => {
  const cursor = params.pagination?.cursor;
  if (cursor === undefined) {
    const ledger = params.startLedger ?? 0;
    return { ledger, after: endOfLedger(ledger - 1) };
  }
  const position = parseEventId(cursor);
  if (!position) throw invalidParams('invalid cursor');
  return { ledger: position.ledger, after: eventId(position) };
};

export const getEvents: RpcMethod = (input, { view, ledger }: RpcContext) => {
  const params = checkedParams(input);
  const limit = params.pagination?.limit || defaultLimit;
  const start = startOf(params);
  const cursor = params.pagination?.cursor;
  // A node of another chain takes a foreign cursor without a word and answers empty pages for ever (stellar-rpc#313).
  if (view.isForeign && cursor !== undefined) return { events: [], ...view.window(), cursor };
  if (start.ledger < view.oldestLedger || start.ledger > view.latestLedger) {
    throw new RpcFailure(
      rpcErrorCodes.invalidRequest,
      `startLedger must be within the ledger range: ${view.oldestLedger} - ${view.latestLedger}`,
    );
  }

  const scanEnd = Math.min(start.ledger + ledgerScanLimit, view.latestLedger + 1);
  const endLedger = params.endLedger ? Math.min(params.endLedger, scanEnd) : scanEnd;
  const filters = params.filters ?? [];
  const events: ReturnType<typeof eventInfo>[] = [];
  const candidates = view.isForeign ? [] : ledger.history.eventsAfter(start.after, endLedger);
  for (const event of candidates) {
    if (filters.length > 0 && !filters.some((filter) => matchesFilter(filter, event))) continue;
    events.push(eventInfo(event));
    if (events.length === limit) break;
  }
  // A full page ends at its last event; otherwise all ledgers before the end were seen, to their last position.
  const isFull = events.length === limit;
  return {
    events,
    ...view.window(),
    cursor: isFull ? (events.at(-1)?.id ?? '') : endOfLedger(endLedger - 1),
  };
};
