import type Database from 'better-sqlite3';
import type { Clock } from '../platform/clock';
import { readEventData } from './event-data';
import type { RawEvent } from './event-source';

/** What was given up: by one handler, or, unreadable (`handler` null), by the decoder for all of them. */
export interface EventDeadLetter {
  seq: number;
  eventId: string;
  handler: string | null;
  attempts: number;
  code: string;
  message: string;
  /** Epoch milliseconds. */
  diedAt: number;
  event: RawEvent;
}

export interface DeadLetterFilter {
  handler?: string;
  eventIds?: readonly string[];
}

/** Who did something to the file by hand, and why. Kept for good. */
export interface AuditNote {
  action: string;
  operator: string;
  reason: string;
  details: Record<string, unknown>;
}

interface LetterRow extends Omit<EventDeadLetter, 'event'> {
  eventData: string | Buffer;
}

/** The dead letters of one queue file: list, count, replay. */
export class EventDeadLetters {
  constructor(
    private readonly db: Database.Database,
    private readonly clock: Clock,
  ) {}

  /** In order of storing, behind `afterSeq`. */
  list(filter: DeadLetterFilter, page: { limit: number; afterSeq?: number }): EventDeadLetter[] {
    const { where, values } = conditions(filter);
    const rows = this.db
      .prepare(`SELECT * FROM (${LETTERS}) WHERE seq > ? ${where} ORDER BY seq, handler LIMIT ?`)
      .all(page.afterSeq ?? 0, ...values, page.limit) as LetterRow[];
    return rows.map(({ eventData, ...letter }) => ({ ...letter, event: readEventData(eventData) }));
  }

  count(filter: DeadLetterFilter): number {
    const { where, values } = conditions(filter);
    return this.db
      .prepare(`SELECT count(*) FROM (${LETTERS}) WHERE true ${where}`)
      .pluck()
      .get(...values) as number;
  }

  /**
   * Makes dead deliveries ready again, with all their tries; quarantined events go back to the end of the line to be
   * decoded anew. Two replays at once replay each letter once. Returns how many.
   */
  replay(filter: DeadLetterFilter, by: { operator: string; reason: string }): number {
    return this.db
      .transaction(() => {
        const { where, values } = conditions(filter);
        const letters = this.db
          .prepare(`SELECT seq, handler FROM (${LETTERS}) WHERE true ${where}`)
          .all(...values) as Pick<EventDeadLetter, 'seq' | 'handler'>[];
        for (const { seq, handler } of letters) {
          if (handler === null) this.requeue(seq);
          else this.revive(seq, handler);
        }
        this.note({ action: 'replay', ...by, details: { ...filter, replayed: letters.length } });
        return letters.length;
      })
      .immediate();
  }

  note({ action, operator, reason, details }: AuditNote): void {
    this.db
      .prepare('INSERT INTO audit (at, action, operator, reason, details) VALUES (?, ?, ?, ?, ?)')
      .run(this.clock.now(), action, operator, reason, JSON.stringify(details));
  }

  private revive(seq: number, handler: string): void {
    this.db
      .prepare(
        `UPDATE deliveries SET state = 'ready', attempts = 0, crashes = 0, diedAt = NULL, errorCode = NULL, error = NULL
         WHERE seq = ? AND handler = ? AND state = 'dead'`,
      )
      .run(seq, handler);
    this.db
      .prepare(
        `UPDATE events SET status = 'pending', phase = 0, processTime = NULL WHERE seq = ? AND phase = 2`,
      )
      .run(seq);
  }

  /** Routing never looks back, so an event that it has passed gets a new place. */
  private requeue(seq: number): void {
    const next = this.db.prepare(`SELECT value FROM counters WHERE name = 'nextSeq'`).pluck().get() as number;
    this.db.prepare(`UPDATE counters SET value = ? WHERE name = 'nextSeq'`).run(next + 1);
    this.db
      .prepare(
        `UPDATE events SET seq = ?, status = 'pending', phase = 0, processTime = NULL, error = NULL
         WHERE seq = ? AND phase = 2`,
      )
      .run(next, seq);
  }
}

const LETTERS = `
  SELECT d.seq, e.id AS eventId, d.handler, d.attempts, d.errorCode AS code, d.error AS message, d.diedAt, e.eventData
  FROM deliveries d JOIN events e ON e.seq = d.seq WHERE d.state = 'dead'
  UNION ALL
  SELECT e.seq, e.id, NULL, 0, 'MALFORMED_EVENT', e.error, e.processTime, e.eventData
  FROM events e INDEXED BY events_failed
  WHERE e.phase = 2 AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.seq = e.seq)`;

function conditions({ handler, eventIds }: DeadLetterFilter): { where: string; values: string[] } {
  const parts: string[] = [];
  const values: string[] = [];
  if (handler !== undefined) {
    parts.push('AND handler = ?');
    values.push(handler);
  }
  if (eventIds !== undefined) {
    parts.push(`AND eventId IN (SELECT value FROM json_each(?))`);
    values.push(JSON.stringify(eventIds));
  }
  return { where: parts.join(' '), values };
}
