import type Database from 'better-sqlite3';
import type { EventDeadLetters } from './dead-letters';
import type { DeliveryStore } from './delivery-store';

/** What is to be given up: owed to a handler, or, with null, events that nobody could read. */
export interface DiscardFilter {
  handler: string | null;
  eventIds?: readonly string[];
}

export interface Discardable {
  /** Waiting for the handler, or given up by it. */
  matching: number;
  /** With the handler right now: a process serves it, so it is not gone. These are left alone. */
  inHand: number;
}

const CHUNK_ROWS = 2_000;

/**
 * Gives up by hand what no handler will ever take: of one that was removed or renamed, whose deliveries would keep their
 * events open, and the shared checkpoint back, for ever; or dead letters that nobody wants to replay.
 */
export class DeliveryDiscard {
  constructor(
    private readonly db: Database.Database,
    private readonly deliveries: DeliveryStore,
    private readonly audit: EventDeadLetters,
  ) {}

  count(filter: DiscardFilter): Discardable {
    const one = (sql: string): number =>
      this.db.prepare(`SELECT count(*) ${sql}`).pluck().get(parametersOf(filter)) as number;
    return {
      matching: one(sourceOf(filter)),
      inHand:
        filter.handler === null
          ? 0
          : one(`FROM deliveries INDEXED BY deliveries_leased WHERE handler = @handler AND state = 'leased'`),
    };
  }

  /** In short transactions, so that a service on the same file gets its turn in between. Returns how many. */
  discard(filter: DiscardFilter, by: { operator: string; reason: string }): number {
    const { matching } = this.count(filter);
    this.audit.note({ action: 'discard', ...by, details: { ...filter, matching } });
    let discarded = 0;
    for (let some = -1; some !== 0; discarded += some) some = this.discardSome(filter);
    return discarded;
  }

  private discardSome(filter: DiscardFilter): number {
    return this.db
      .transaction(() => {
        const seqs = this.db
          .prepare(`SELECT seq ${sourceOf(filter)} LIMIT ${CHUNK_ROWS}`)
          .pluck()
          .all(parametersOf(filter)) as number[];
        const remove = this.db.prepare('DELETE FROM deliveries WHERE seq = ? AND handler = ?');
        for (const seq of seqs) {
          if (filter.handler !== null) remove.run(seq, filter.handler);
          this.deliveries.project(seq, 0);
        }
        return seqs.length;
      })
      .immediate();
  }
}

function sourceOf({ handler, eventIds }: DiscardFilter): string {
  const named =
    eventIds === undefined
      ? ''
      : 'AND seq IN (SELECT e.seq FROM events e WHERE e.id IN (SELECT value FROM json_each(@eventIds)))';
  return handler === null
    ? `FROM events INDEXED BY events_failed
       WHERE phase = 2 AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.seq = events.seq) ${named}`
    : `FROM deliveries WHERE handler = @handler AND state <> 'leased' ${named}`;
}

const parametersOf = ({ handler, eventIds }: DiscardFilter): Record<string, string> => ({
  ...(handler === null ? {} : { handler }),
  ...(eventIds === undefined ? {} : { eventIds: JSON.stringify(eventIds) }),
});
