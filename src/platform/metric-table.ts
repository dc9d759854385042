/**
 * Every figure there is, under the name that call sites use. A scrape shows it as `sorolane_…`, times in seconds. A label
 * takes few values, all known beforehand: what grows with the work (ids, addresses, messages) belongs into the log.
 */
export interface MetricDefinition {
  kind: 'counter' | 'histogram' | 'gauge';
  help: string;
  labels: readonly string[];
  /** Upper bounds of a histogram's buckets, in the unit of the name. */
  buckets?: readonly number[];
}

const RPC_LATENCY_MS = [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000];
const HANDLER_MS = [1, 5, 10, 25, 50, 100, 250, 500, 1_000, 5_000, 15_000, 60_000];
/** A try waits for a ledger or two, or for minutes when the network is congested. */
const ATTEMPT_MS = [
  10, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000,
];
const DELIVERY_MS = [
  1_000, 2_500, 5_000, 7_500, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000,
];
const TIMER_LAG_MS = [1, 5, 10, 50, 100, 500, 1_000, 5_000, 15_000, 60_000];
/** From the network's lowest fee up, in steps of about three. */
const FEE_STROOPS = [
  100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000,
];
const INCLUSION_LEDGERS = [1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30];
const FEE_BUMPS = [0, 1, 2, 3, 5, 8];

export const metricTable = {
  worker_attempts_total: {
    kind: 'counter',
    help: 'Tries of a job that ended in this process, by how they ended.',
    labels: ['pipeline', 'outcome'],
  },
  worker_attempt_duration_ms: {
    kind: 'histogram',
    help: 'Time from the claim of a job to the end of the try.',
    labels: ['pipeline', 'outcome'],
    buckets: ATTEMPT_MS,
  },
  worker_renewal_lag_ms: {
    kind: 'histogram',
    help: 'How late the renewal of leases began: what a handler that blocks the event loop costs.',
    labels: [],
    buckets: TIMER_LAG_MS,
  },
  worker_lanes: { kind: 'gauge', help: 'Lanes of this process.', labels: ['pipeline'] },
  worker_lanes_busy: {
    kind: 'gauge',
    help: 'Lanes of this process with a job in hand.',
    labels: ['pipeline'],
  },
  workers_alive: {
    kind: 'gauge',
    help: 'Worker processes on this database whose heartbeat is fresh. Every process tells the same.',
    labels: [],
  },
  jobs: {
    kind: 'gauge',
    help: 'Jobs on this database by state, ended ones included until they are removed. Every process tells the same.',
    labels: ['pipeline', 'state'],
  },
  dead_letters_open: {
    kind: 'gauge',
    help: 'Dead letters on this database that nobody has dealt with. Every process tells the same.',
    labels: ['pipeline'],
  },
  randomness_transitions_total: {
    kind: 'counter',
    help: 'Changes of state of randomness jobs.',
    labels: ['from', 'to'],
  },
  randomness_delivery_latency_ms: {
    kind: 'histogram',
    help: 'Time from the close of the ledger that asked for randomness to its confirmation.',
    labels: ['priority'],
    buckets: DELIVERY_MS,
  },
  randomness_sla_breaches_total: {
    kind: 'counter',
    help: 'High-priority deliveries that took longer than ORACLE_HIGH_PRIORITY_SLA_MS.',
    labels: ['priority'],
  },
  stellar_rpc_calls_total: {
    kind: 'counter',
    help: 'Calls to RPC endpoints by how they ended: ok, or the code of the error.',
    labels: ['endpoint', 'method', 'outcome'],
  },
  stellar_rpc_latency_ms: {
    kind: 'histogram',
    help: 'Time to the answer of an RPC endpoint, for calls that were answered.',
    labels: ['endpoint', 'method'],
    buckets: RPC_LATENCY_MS,
  },
  stellar_submissions_total: {
    kind: 'counter',
    help: 'Transactions whose end is known, by that end.',
    labels: ['outcome'],
  },
  stellar_resends_total: {
    kind: 'counter',
    help: 'Transactions whose same bytes were sent once more.',
    labels: [],
  },
  stellar_send_errors_total: {
    kind: 'counter',
    help: 'Transactions that a node refused to take, by the result code of the network.',
    labels: ['code'],
  },
  stellar_fee_bumps_total: {
    kind: 'counter',
    help: 'Fee bumps that were signed for transactions that did not land.',
    labels: [],
  },
  stellar_transaction_fee_bumps: {
    kind: 'histogram',
    help: 'Fee bumps that a transaction had by its end.',
    labels: [],
    buckets: FEE_BUMPS,
  },
  stellar_fee_bid_stroops: {
    kind: 'histogram',
    help: 'Inclusion fee bid per operation.',
    labels: ['fee_class'],
    buckets: FEE_STROOPS,
  },
  stellar_fee_charged_stroops: {
    kind: 'histogram',
    help: 'Whole fee that the network charged for a transaction that landed.',
    labels: [],
    buckets: FEE_STROOPS,
  },
  stellar_inclusion_ledgers: {
    kind: 'histogram',
    help: 'Ledgers from the signing of a transaction to the ledger that holds it.',
    labels: [],
    buckets: INCLUSION_LEDGERS,
  },
  ingestion_handler_duration_ms: {
    kind: 'histogram',
    help: 'Time that a call of an event handler took.',
    labels: ['handler'],
    buckets: HANDLER_MS,
  },
  ingestion_deliveries_total: {
    kind: 'counter',
    help: 'Deliveries of events to handlers, by how they ended.',
    labels: ['handler', 'outcome'],
  },
  ingestion_foreign_events_total: {
    kind: 'counter',
    help: 'Events that a server gave though nobody asked for their contract.',
    labels: [],
  },
  ingestion_contradictions_total: {
    kind: 'counter',
    help: 'Events that came again under the same id with other content.',
    labels: [],
  },
  ingestion_gaps_total: {
    kind: 'counter',
    help: 'Stretches of ledgers that could not be read any more: events in them are lost.',
    labels: ['reason'],
  },
  ingestion_leading: {
    kind: 'gauge',
    help: '1 while this process reads the chain, 0 while it stands by for the one that does.',
    labels: [],
  },
  ingestion_healthy: { kind: 'gauge', help: '1 while event ingestion reports no problem.', labels: [] },
  ingestion_lag_ledgers: {
    kind: 'gauge',
    help: 'Ledgers between the rearmost contract and the newest ledger known. Left out while that is unknown.',
    labels: [],
  },
  ingestion_pending_events: {
    kind: 'gauge',
    help: 'Events that wait for a handler, those in back-off included.',
    labels: [],
  },
  ingestion_processing_events: { kind: 'gauge', help: 'Events that are with a handler.', labels: [] },
  ingestion_failed_events: {
    kind: 'gauge',
    help: 'Events that a handler gave up, or that could not be read.',
    labels: [],
  },
  ingestion_oldest_pending_age_ms: {
    kind: 'gauge',
    help: 'Age of the oldest event that is not done; 0 without any.',
    labels: [],
  },
  build_info: { kind: 'gauge', help: 'Always 1; which version runs.', labels: ['version'] },
  scrape_errors_total: {
    kind: 'counter',
    help: 'Times that gauges were left out of a scrape because their source did not answer.',
    labels: ['source'],
  },
} as const satisfies Record<string, MetricDefinition>;

export type MetricName = keyof typeof metricTable;
type NameOf<Kind> = {
  [Name in MetricName]: (typeof metricTable)[Name]['kind'] extends Kind ? Name : never;
}[MetricName];
export type CounterName = NameOf<'counter'>;
export type HistogramName = NameOf<'histogram'>;
export type GaugeName = NameOf<'gauge'>;

/** The labels of a metric, each of them. */
export type LabelsOf<Name extends MetricName> = Readonly<
  Record<(typeof metricTable)[Name]['labels'][number], string>
>;
