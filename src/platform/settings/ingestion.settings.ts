import { strkeyForms } from './strkey';
import { variable } from './variables';

const HOUR_MS = 60 * 60 * 1000;
const MIB = 1024 * 1024;

/** Reading contract events, and the queue file they wait in. */
export const ingestionSettings = {
  EVENT_CONTRACT_IDS: variable.strkeyList(
    strkeyForms.contractId,
    'Contracts to follow beside those that the pipelines name themselves (C…, separated by commas).',
  ),
  EVENT_HANDLER_MODULES: variable.list(
    'Event handlers of your own: paths or packages, with commas between, each exporting eventHandlers.',
  ),
  EVENT_INGESTION_START_LEDGER: variable.count(
    0,
    'Ledger at which a contract that was never read begins; 0 begins at the newest.',
  ),
  EVENT_CURSOR: variable.optionalText(
    'Reads on from this RPC cursor at the next start, whatever is stored. Unset it again afterwards.',
  ),
  EVENT_INGESTION_LIMIT: variable.count(1_000, 'Most events asked for in one page.', { min: 1, max: 10_000 }),
  EVENT_INGESTION_POLL_INTERVAL_MS: variable.durationMs(5_000, 'Time between two looks at the chain.'),
  EVENT_INGESTION_PROCESS_INTERVAL_MS: variable.durationMs(
    1_000,
    'Longest time that a stored event waits unnoticed for its handlers.',
  ),
  EVENT_INGESTION_LEASE_MS: variable.durationMs(
    15_000,
    'After this time without a sign of life the leading ingester is replaced by the next.',
    { min: 1_000 },
  ),
  EVENT_MAX_LAG_LEDGERS: variable.count(20, 'Ledgers behind the network at which health complains.'),
  EVENT_QUEUE_PATH: variable.text('./event-queue.db', 'SQLite file that events wait in. On a local disk.'),
  EVENT_QUEUE_MAX_RETRIES: variable.count(3, 'Tries that a handler of normal priority has for an event.', {
    min: 1,
  }),
  EVENT_QUEUE_MAX_PENDING: variable.count(100_000, 'Events waiting for handlers at which reading pauses.', {
    min: 1,
  }),
  EVENT_QUEUE_MAX_FILE_BYTES: variable.count(0, 'Largest size of the queue file; 0 leaves it to the disk.'),
  EVENT_QUEUE_MIN_FREE_DISK_BYTES: variable.count(
    32 * MIB,
    'Free space on the disk below which nothing more is read, so that handlers can finish.',
  ),
  EVENT_QUEUE_LEASE_MS: variable.durationMs(
    30_000,
    'After this time without a sign of life an event is taken from the process that handles it.',
    { min: 1_000 },
  ),
  EVENT_QUEUE_RETENTION_MS: variable.ageMs(24 * HOUR_MS, 'Processed events are removed after this time.'),
  EVENT_QUEUE_COMPRESS_AFTER_MS: variable.ageMs(HOUR_MS, 'Processed events are compressed after this time.'),
  EVENT_QUEUE_CLEANUP_INTERVAL_MS: variable.durationMs(
    HOUR_MS,
    'Time between two cleanings of the queue file.',
  ),
  EVENT_QUEUE_MAX_AGE_MS: variable.ageMs(
    60_000,
    'Age of the oldest waiting event at which health complains.',
  ),
  EVENT_HANDLER_TIMEOUT_MS: variable.durationMs(60_000, 'A handler call that takes longer counts as failed.'),
  EVENT_HANDLER_MAX_CALLS: variable.count(32, 'Handler calls at one time in one process.', { min: 1 }),
  EVENT_STREAM_HEARTBEAT_MS: variable.durationMs(
    15_000,
    'Time between two heartbeats of the event WebSocket.',
  ),
  EVENT_STREAM_STALL_MS: variable.durationMs(
    10_000,
    'A WebSocket client that takes nothing for this time is dropped.',
  ),
  EVENT_STREAM_MAX_CLIENTS: variable.count(100, 'WebSocket clients at one time.', { min: 1 }),
} as const;
