import type Database from 'better-sqlite3';
import { PermanentError } from '../platform/errors';

/** Written to `user_version`; a file with a higher one was made by a later release and is refused. */
const SCHEMA_VERSION = 2;

/** Written to `application_id` ("SoEQ"), by which a queue file is told from any other SQLite database. */
const APPLICATION_ID = 0x536f4551;

/**
 * `events` carries the specified columns. `phase` says the same as `status` in the coarse way the indexes need, so that
 * pending ↔ processing, which happens at every claim, touches no index.
 *
 * - followed 1: a contract that was found at run time, and is read beside the configured ones
 * - phase 0: open (pending, processing)   1: processed   2: failed
 * - eventData: JSON text, or, once compressed, a raw-deflate blob
 *
 * `deliveries` holds what is still owed to a handler (ready, waiting, suspect, leased) and what was given up (dead). A delivery
 * that is done is deleted: the table stays as small as the backlog, and an event with no rows left is processed.
 * `lane` is 0, or the contract for handlers that want order. A suspect was in hand when its process died, twice: it is
 * delivered with nothing else beside it, so that further deaths name the culprit.
 */
const SCHEMA = `
CREATE TABLE contracts (
  key         INTEGER PRIMARY KEY,
  contractId  TEXT NOT NULL UNIQUE,
  cursor      TEXT,
  startLedger INTEGER,
  followed    INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE events (
  seq         INTEGER PRIMARY KEY,
  id          TEXT NOT NULL UNIQUE,
  eventData   BLOB NOT NULL,
  status      TEXT NOT NULL,
  attempts    INTEGER NOT NULL DEFAULT 0,
  enqueueTime INTEGER NOT NULL,
  processTime INTEGER,
  error       TEXT,
  phase       INTEGER NOT NULL DEFAULT 0,
  compressed  INTEGER NOT NULL DEFAULT 0,
  contract    INTEGER NOT NULL,
  ledger      INTEGER NOT NULL
);
CREATE INDEX events_open ON events (contract, ledger) WHERE phase = 0;
CREATE INDEX events_open_since ON events (enqueueTime) WHERE phase = 0;
CREATE INDEX events_processed ON events (compressed, processTime) WHERE phase = 1;
CREATE INDEX events_failed ON events (seq) WHERE phase = 2;

CREATE TABLE deliveries (
  seq         INTEGER NOT NULL,
  handler     TEXT NOT NULL,
  lane        INTEGER NOT NULL,
  state       TEXT NOT NULL,
  attempts    INTEGER NOT NULL DEFAULT 0,
  crashes     INTEGER NOT NULL DEFAULT 0,
  maxAttempts INTEGER NOT NULL,
  dueAt       INTEGER,
  leaseToken  TEXT,
  leaseUntil  INTEGER,
  errorCode   TEXT,
  error       TEXT,
  diedAt      INTEGER,
  PRIMARY KEY (seq, handler)
) WITHOUT ROWID;
CREATE INDEX deliveries_ready ON deliveries (handler, lane, seq) WHERE state = 'ready';
CREATE INDEX deliveries_held ON deliveries (handler, lane, seq) WHERE state IN ('waiting', 'suspect');
CREATE INDEX deliveries_suspect ON deliveries (seq) WHERE state = 'suspect';
CREATE INDEX deliveries_due ON deliveries (dueAt) WHERE state = 'waiting';
CREATE INDEX deliveries_leased ON deliveries (handler, lane, seq) WHERE state = 'leased';
CREATE INDEX deliveries_dead ON deliveries (handler, seq) WHERE state = 'dead';

CREATE TABLE gaps (
  id         INTEGER PRIMARY KEY,
  contractId TEXT NOT NULL,
  fromLedger INTEGER,
  toLedger   INTEGER NOT NULL,
  reason     TEXT NOT NULL,
  foundAt    INTEGER NOT NULL,
  UNIQUE (contractId, fromLedger, toLedger)
);
CREATE TABLE audit (
  id       INTEGER PRIMARY KEY,
  at       INTEGER NOT NULL,
  action   TEXT NOT NULL,
  operator TEXT NOT NULL,
  reason   TEXT NOT NULL,
  details  TEXT NOT NULL
);
CREATE TABLE counters (
  name  TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO counters VALUES ('nextSeq', 1), ('routedThrough', 0);
`;

/** What brings a file of version n + 1 to the next; a new one gets {@link SCHEMA} as it is now. */
const MIGRATIONS: readonly string[] = [
  'ALTER TABLE contracts ADD COLUMN followed INTEGER NOT NULL DEFAULT 0',
];

const versionOf = (db: Database.Database): number => db.pragma('user_version', { simple: true }) as number;

/**
 * Reads, and changes nothing.
 * @throws PermanentError EVENT_QUEUE_FOREIGN for a database of something else, EVENT_QUEUE_VERSION for a later release's.
 */
export function recognizeQueueFile(db: Database.Database, path: string): void {
  const tables = db.prepare(`SELECT name FROM sqlite_master WHERE type = 'table'`).pluck().all();
  const version = versionOf(db);
  if (tables.length === 0 && version === 0) return;
  const isMarked = db.pragma('application_id', { simple: true }) === APPLICATION_ID;
  // Files of version 1 bear no mark.
  if (!isMarked && !(version === 1 && tables.includes('deliveries'))) {
    throw new PermanentError(
      'EVENT_QUEUE_FOREIGN',
      `${path} (EVENT_QUEUE_PATH) is a database, but no event queue: name another path`,
    );
  }
  if (version > SCHEMA_VERSION) {
    throw new PermanentError('EVENT_QUEUE_VERSION', `${path} was written by a later release`, {
      details: { version, known: SCHEMA_VERSION },
    });
  }
}

/** Makes the tables of a new file, and brings an older one up to date. To be called in a transaction. */
export function migrateQueueFile(db: Database.Database): void {
  const version = versionOf(db);
  if (version === SCHEMA_VERSION) return;
  for (const step of version === 0 ? [SCHEMA] : MIGRATIONS.slice(version - 1)) db.exec(step);
  db.pragma(`application_id = ${APPLICATION_ID}`);
  db.pragma(`user_version = ${SCHEMA_VERSION}`);
}
