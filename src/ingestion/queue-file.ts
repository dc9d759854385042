import Database from 'better-sqlite3';
import { chmodSync, closeSync, existsSync, openSync, renameSync, rmSync } from 'node:fs';
import { PermanentError } from '../platform/errors';
import type { Logger } from '../platform/logger';
import { migrateQueueFile, recognizeQueueFile } from './queue-schema';

export interface QueueFileOptions {
  path: string;
  logger: Logger;
  /** Bound on the size of the main file in bytes (SQLite's max_page_count). Default: the disk's. */
  maxFileBytes?: number;
  /** For tools that look into the file of a running service: a missing or corrupt one is left as it is, and reported. */
  mustExist?: boolean;
  /** How long a write waits for another process's transaction, milliseconds. */
  busyTimeoutMs?: number;
}

export interface QueueFile {
  db: Database.Database;
  path: string;
  /** Where a file that could not be read was moved to, or null. It is kept for inspection and never deleted. */
  setAside: string | null;
}

const OWNER_ONLY = 0o600;
const SIDE_FILES = ['', '-wal', '-shm'] as const;
const DEFAULT_BUSY_TIMEOUT_MS = 10_000;
const CACHE_KIB = 4_096;
/** Each checkpoint waits for the disk; a spike is taken in with one per 16 MiB rather than one per 4. */
export const CHECKPOINT_PAGES = 4_000;

/**
 * SQLite's result code where `error` came from SQLite, or null. Known by its name rather than its class: copies of the
 * module in one process share the native part, which throws the class of whichever was loaded first.
 */
export function sqliteCode(error: unknown): string | null {
  const { name, code } = (error ?? {}) as { name?: unknown; code?: unknown };
  return name === 'SqliteError' && typeof code === 'string' ? code : null;
}

/** No room: the disk's, or the bound of `maxFileBytes`. The transaction was rolled back; nothing of it is stored. */
export const isFull = (error: unknown): boolean => sqliteCode(error) === 'SQLITE_FULL';

export function isCorrupt(error: unknown): boolean {
  const code = sqliteCode(error);
  return code !== null && (code.startsWith('SQLITE_CORRUPT') || code === 'SQLITE_NOTADB');
}

/**
 * Opens the queue file, or makes it, readable by its owner only. A file that SQLite can't read is set aside under a
 * name that is logged, and an empty one takes its place: intake resumes from the shared checkpoint.
 * @throws PermanentError for a file of a later release, for a database of something else, and for a missing one that
 * must exist; SQLite's own error when the path can't be opened.
 */
export function openQueueFile(options: QueueFileOptions): QueueFile {
  const { path, logger, mustExist = false } = options;
  if (mustExist && !existsSync(path)) {
    throw new PermanentError('EVENT_QUEUE_MISSING', `there is no event queue file at ${path}`);
  }
  try {
    return { db: open(options), path, setAside: null };
  } catch (error) {
    if (mustExist || !isCorrupt(error)) throw error;
    const setAside = setFileAside(path);
    logger.error(
      { path, setAside, code: sqliteCode(error) },
      'the event queue file is corrupt: it was set aside and an empty one takes its place',
    );
    return { db: open(options), path, setAside };
  }
}

export function deleteQueueFile(path: string): void {
  for (const suffix of SIDE_FILES) rmSync(path + suffix, { force: true });
}

function open({ path, maxFileBytes, busyTimeoutMs, mustExist = false }: QueueFileOptions): Database.Database {
  // SQLite gives its side files the mode of the main one, so that one has to exist with it beforehand.
  closeSync(openSync(path, 'a', OWNER_ONLY));
  const db = new Database(path, { timeout: busyTimeoutMs ?? DEFAULT_BUSY_TIMEOUT_MS });
  try {
    // Before anything is written: a path that names another program's database by mistake must not cost it anything.
    recognizeQueueFile(db, path);
    for (const suffix of SIDE_FILES) if (existsSync(path + suffix)) chmodSync(path + suffix, OWNER_ONLY);
    db.pragma('auto_vacuum = INCREMENTAL');
    db.pragma('journal_mode = WAL');
    db.pragma('synchronous = NORMAL');
    db.pragma(`cache_size = -${CACHE_KIB}`);
    db.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
    if (!mustExist) assertIntact(db);
    if (maxFileBytes !== undefined) {
      const pageBytes = db.pragma('page_size', { simple: true }) as number;
      db.pragma(`max_page_count = ${Math.max(1, Math.floor(maxFileBytes / pageBytes))}`);
    }
    db.transaction(() => migrateQueueFile(db)).immediate();
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function assertIntact(db: Database.Database): void {
  const verdict = db.pragma('quick_check(1)', { simple: true });
  if (verdict !== 'ok') throw new Database.SqliteError(String(verdict), 'SQLITE_CORRUPT');
}

function setFileAside(path: string): string {
  const stamp = new Date().toISOString().replaceAll(/[:.]/g, '-');
  const setAside = `${path}.corrupt-${stamp}`;
  for (const suffix of SIDE_FILES) {
    if (existsSync(path + suffix)) renameSync(path + suffix, setAside + suffix);
  }
  return setAside;
}
