import Database from 'better-sqlite3';
import { chmodSync, closeSync, existsSync, openSync, readSync, renameSync, rmSync } from 'node:fs';
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
/** What every SQLite file begins with. */
const SQLITE_HEADER = Buffer.from('SQLite format 3\0');
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
 * Opens the queue file, or makes it, readable by its owner only. A database that SQLite can't read is set aside
 * under a name that is logged, and an empty one takes its place: intake resumes from the shared checkpoint. A file that is
 * no database was never ours, and is left alone.
 * @throws PermanentError EVENT_QUEUE_… for a path that can't be opened, a file of something else or of a later release, and
 * for a missing or corrupt one that must exist.
 */
export function openQueueFile(options: QueueFileOptions): QueueFile {
  const { path, logger, mustExist = false } = options;
  if (mustExist && !existsSync(path)) {
    throw new PermanentError('EVENT_QUEUE_MISSING', `there is no event queue file at ${path}`);
  }
  refuseForeignFile(path, mustExist ? 'r' : 'a+');
  try {
    return { db: open(options), path, setAside: null };
  } catch (error) {
    if (!isCorrupt(error)) throw error;
    if (mustExist) {
      throw new PermanentError('EVENT_QUEUE_CORRUPT', `the event queue file ${path} is corrupt`, {
        cause: error,
      });
    }
    const setAside = setFileAside(path);
    logger.error(
      { path, setAside, code: sqliteCode(error) },
      'the event queue file is corrupt: it was set aside and an empty one takes its place',
    );
    return { db: open(options), path, setAside };
  }
}

/** Makes an empty file where there is none: SQLite gives its side files the mode of the main one. */
function refuseForeignFile(path: string, flags: 'r' | 'a+'): void {
  const begin = Buffer.alloc(SQLITE_HEADER.length);
  let length: number;
  try {
    const file = openSync(path, flags, OWNER_ONLY);
    try {
      length = readSync(file, begin, 0, begin.length, 0);
    } finally {
      closeSync(file);
    }
  } catch (error) {
    const code = String((error as NodeJS.ErrnoException).code);
    const why = PATH_PROBLEMS[code] ?? `it can't be opened (${code})`;
    throw new PermanentError(
      'EVENT_QUEUE_PATH',
      `no event queue can be kept at ${path} (EVENT_QUEUE_PATH): ${why}`,
      {
        cause: error,
      },
    );
  }
  if (length === 0 || begin.equals(SQLITE_HEADER)) return;
  throw new PermanentError(
    'EVENT_QUEUE_FOREIGN',
    `${path} is no event queue: it was left as it is. Set EVENT_QUEUE_PATH to another path, or move that file away`,
  );
}

const PATH_PROBLEMS: Partial<Record<string, string>> = {
  ENOENT: 'there is no such directory',
  ENOTDIR: 'it leads through a file',
  EISDIR: 'it is a directory',
  EACCES: 'permission denied',
  EROFS: 'the disk is read-only',
};

export function deleteQueueFile(path: string): void {
  for (const suffix of SIDE_FILES) rmSync(path + suffix, { force: true });
}

function open({ path, maxFileBytes, busyTimeoutMs, mustExist = false }: QueueFileOptions): Database.Database {
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
