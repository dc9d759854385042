import type Database from 'better-sqlite3';
import type { Clock } from '../platform/clock';
import { compressEventData } from './event-data';
import { emptyLog } from './storage-room';

const CHUNK_ROWS = 2_000;
const VACUUM_PAGES = 2_000;

/** Keeps the file small. Each step is one short transaction, so that intake and handlers get their turn in between. */
export class QueueMaintenance {
  private readonly expired;
  private readonly expiredCount;
  private readonly remove;
  private readonly oldest;
  private readonly uncompressed;
  private readonly setCompressed;

  constructor(
    private readonly db: Database.Database,
    private readonly clock: Clock,
  ) {
    const processed = 'events INDEXED BY events_processed WHERE compressed = ? AND phase = 1';
    this.expired = db.prepare(`SELECT seq FROM ${processed} AND processTime <= ? LIMIT ?`).pluck();
    this.expiredCount = db.prepare(`SELECT count(*) FROM ${processed} AND processTime <= ?`).pluck();
    this.oldest = db.prepare(`SELECT seq FROM ${processed} ORDER BY processTime LIMIT ?`).pluck();
    this.remove = db.prepare('DELETE FROM events WHERE seq = ? AND phase = 1');
    this.uncompressed = db.prepare(
      `SELECT seq, eventData FROM ${processed} AND processTime <= ? ORDER BY processTime LIMIT ?`,
    );
    this.setCompressed = db.prepare('UPDATE events SET eventData = ?, compressed = 1 WHERE seq = ?');
  }

  /** Processed events that `ageMs` would remove. Failed ones are kept until someone has looked at them. */
  countExpired(ageMs: number): number {
    const before = this.clock.now() - ageMs;
    return (this.expiredCount.get(0, before) as number) + (this.expiredCount.get(1, before) as number);
  }

  /** Removes some processed events older than `ageMs`. Returns how many; 0 when none are left. */
  removeExpired(ageMs: number): number {
    const before = this.clock.now() - ageMs;
    return this.db
      .transaction(() =>
        [1, 0].reduce((sum, form) => sum + this.removeAll(this.expired.all(form, before, CHUNK_ROWS)), 0),
      )
      .immediate();
  }

  /** Makes room by removing the oldest processed events, whatever their age. Returns how many. */
  removeOldest(): number {
    return this.db
      .transaction(() => {
        const compressed = this.removeAll(this.oldest.all(1, CHUNK_ROWS));
        return compressed > 0 ? compressed : this.removeAll(this.oldest.all(0, CHUNK_ROWS));
      })
      .immediate();
  }

  /** Compresses some processed events older than `ageMs`. Returns how many; 0 when none are left. */
  compress(ageMs: number): number {
    const before = this.clock.now() - ageMs;
    return this.db
      .transaction(() => {
        const rows = this.uncompressed.all(0, before, CHUNK_ROWS) as { seq: number; eventData: string }[];
        for (const { seq, eventData } of rows) this.setCompressed.run(compressEventData(eventData), seq);
        return rows.length;
      })
      .immediate();
  }

  /** Gives pages of removed rows back to the disk, and empties the log into the main file. */
  shrink(): void {
    this.db.pragma(`incremental_vacuum(${VACUUM_PAGES})`);
    emptyLog(this.db);
  }

  private removeAll(seqs: unknown[]): number {
    for (const seq of seqs) this.remove.run(seq);
    return seqs.length;
  }
}
