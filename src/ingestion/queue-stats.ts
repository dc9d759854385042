import type Database from 'better-sqlite3';
import type { Clock } from '../platform/clock';

export interface EventQueueStats {
  total: number;
  /** Waiting for a handler, back-off included. */
  pending: number;
  /** With a handler right now. */
  processing: number;
  /** Those of `pending` that failed before and wait for another try. */
  retrying: number;
  processed: number;
  /** Given up by a handler, or unreadable. */
  failed: number;
  /** Milliseconds since the oldest open event was stored; 0 when none is open. */
  oldestEventAge: number;
}

/** Counts through partial indexes: no row is read, let alone loaded. */
export function makeStatsReader(db: Database.Database, clock: Clock): () => EventQueueStats {
  const counts = db.prepare(`
    SELECT
      (SELECT count(*) FROM events INDEXED BY events_open WHERE phase = 0) AS open,
      (SELECT count(*) FROM events INDEXED BY events_processed WHERE phase = 1) AS processed,
      (SELECT count(*) FROM events INDEXED BY events_failed WHERE phase = 2) AS failed,
      (SELECT count(DISTINCT seq) FROM deliveries INDEXED BY deliveries_leased WHERE state = 'leased') AS processing,
      (SELECT count(DISTINCT seq) FROM deliveries INDEXED BY deliveries_due WHERE state = 'waiting') AS retrying,
      (SELECT min(enqueueTime) FROM events INDEXED BY events_open_since WHERE phase = 0) AS oldest`);
  return () => {
    const { open, oldest, ...rest } = counts.get() as Pick<
      EventQueueStats,
      'processed' | 'failed' | 'processing' | 'retrying'
    > & { open: number; oldest: number | null };
    return {
      total: open + rest.processed + rest.failed,
      pending: open - rest.processing,
      ...rest,
      oldestEventAge: oldest === null ? 0 : Math.max(0, clock.now() - oldest),
    };
  };
}
