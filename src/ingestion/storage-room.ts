import { statfsSync } from 'node:fs';
import path from 'node:path';
import type { QueueFile } from './queue-file';

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

/** Tells whether there is room for another page, before it is written. */
export function makeRoomGauge({ db, path: filePath }: QueueFile, limits: RoomLimits): () => Room {
  const pageBytes = db.pragma('page_size', { simple: true }) as number;
  const directory = path.dirname(path.resolve(filePath));
  return () => {
    if (limits.maxFileBytes !== undefined) {
      const pages = db.pragma('page_count', { simple: true }) as number;
      const free = db.pragma('freelist_count', { simple: true }) as number;
      if ((pages - free) * pageBytes > limits.maxFileBytes * (1 - RESERVED_SHARE)) {
        return { kind: 'full', reason: 'file_limit' };
      }
    }
    const disk = statfsSync(directory);
    if (disk.bavail * disk.bsize < limits.minFreeDiskBytes) return { kind: 'full', reason: 'disk' };
    return { kind: 'room' };
  };
}
