import { statfsSync, statSync } from 'node:fs';
import path from 'node:path';
import { CHECKPOINT_PAGES, isFull, type QueueFile } from './queue-file';

export interface RoomLimits {
  /** Same bound as the file was opened with, in bytes. */
  maxFileBytes?: number;
  /** Intake stops while the disk has less than so many bytes free, so that handlers can still record their progress. */
  minFreeDiskBytes: number;
}

export type Room = { kind: 'room' } | { kind: 'full'; reason: 'disk' | 'file_limit' };

/**
 * Share of a bounded file that intake leaves alone. Deliveries of what is already stored have to find room, or a full
 * file could never drain.
 */
const RESERVED_SHARE = 0.25;

/** The least that is left for the results of deliveries. */
const HEADROOM_BYTES = 1024 * 1024;

/** Rows with their indexes, once in the log and once in the main file. */
const BYTES_STORED_PER_BYTE = 4;

const MIN_CHECKPOINT_PAGES = 64;

/**
 * Tells whether there is room for a page of about `incomingBytes`, before it is written. What is written lies in the log
 * until a checkpoint moves it into the main file, which then has to grow while the log is still there: a log that took
 * the last of the disk could never be emptied. So the less is free, the shorter it is kept.
 */
export function makeRoomGauge(
  { db, path: filePath }: QueueFile,
  limits: RoomLimits,
): (incomingBytes: number) => Room {
  const pageBytes = db.pragma('page_size', { simple: true }) as number;
  const directory = path.dirname(path.resolve(filePath));
  let checkpointPages = CHECKPOINT_PAGES;
  const free = (): number => {
    const disk = statfsSync(directory);
    return disk.bavail * disk.bsize;
  };
  const fitLog = (freeBytes: number): void => {
    const affordable = Math.floor(freeBytes / 8 / pageBytes);
    const pages = Math.max(MIN_CHECKPOINT_PAGES, Math.min(CHECKPOINT_PAGES, affordable));
    if (pages === checkpointPages) return;
    db.pragma(`wal_autocheckpoint = ${pages}`);
    checkpointPages = pages;
  };
  return (incomingBytes) => {
    if (limits.maxFileBytes !== undefined) {
      const pages = db.pragma('page_count', { simple: true }) as number;
      const unused = db.pragma('freelist_count', { simple: true }) as number;
      if ((pages - unused) * pageBytes > limits.maxFileBytes * (1 - RESERVED_SHARE)) {
        return { kind: 'full', reason: 'file_limit' };
      }
    }
    const wanted = Math.max(limits.minFreeDiskBytes, HEADROOM_BYTES + incomingBytes * BYTES_STORED_PER_BYTE);
    const logBytes = statSync(`${filePath}-wal`, { throwIfNoEntry: false })?.size ?? 0;
    if (logBytes > 0 && free() < wanted + logBytes) emptyLog(db);
    const freeBytes = free();
    fitLog(freeBytes);
    return freeBytes < wanted ? { kind: 'full', reason: 'disk' } : { kind: 'room' };
  };
}

/**
 * Moves what the log holds into the main file and gives the log's room back. Without effect while another process
 * reads, and where the main file would have to grow and can't.
 */
export function emptyLog(db: QueueFile['db']): void {
  try {
    db.pragma('wal_checkpoint(TRUNCATE)');
  } catch (error) {
    if (!isFull(error)) throw error;
  }
}
