import type Database from 'better-sqlite3';
import type { Clock } from '../platform/clock';
import { endOfLedger, isAhead } from './chain-position';
import type { ChainTip } from './chain-tip';
import { readEventData, serializeEvent } from './event-data';
import type { RawEvent } from './event-source';
import { isFull, type QueueFile } from './queue-file';
import { makeRoomGauge, type RoomLimits } from './storage-room';

/** Where reading of one contract's events goes on. */
export type StreamPosition =
  { startLedger: number; cursor?: undefined } | { cursor: string; startLedger?: undefined };

/** Ledgers whose events a server no longer had when we came for them. Both ends inclusive. */
export interface Gap {
  contractId: string;
  /** Null when nothing is known of where we stood (the file was lost). */
  fromLedger: number | null;
  toLedger: number;
  reason: 'retention' | 'file_lost';
}
export interface RecordedGap extends Gap {
  id: number;
  /** Epoch milliseconds. */
  foundAt: number;
}

export interface QueuedRow {
  /** Order of storing, which is the order in which other readers of the file see rows appear. */
  seq: number;
  contract: number;
  event: RawEvent;
}

/** What can't be read as an event, kept as it came. */
export interface MalformedEvent {
  id: string;
  contractId: string;
  data: unknown;
  reason: string;
}

export interface IntakePage {
  events: readonly RawEvent[];
  malformed?: readonly MalformedEvent[];
  /** Contracts that this page was read for, all of which now stand at `position`. */
  contractIds: readonly string[];
  position: StreamPosition | null;
  gaps?: readonly Gap[];
  /** The newest ledger of the network by the server that gave the page. */
  tip?: ChainTip | null;
}

/** full: nothing of the page is stored, the cursors stand where they were, and the same page may be offered again. */
export type StoreResult =
  /** `contradictions`: those of the duplicates that are not what is stored under their id. The first one stays. */
  | { kind: 'stored'; inserted: number; duplicates: number; contradictions: number }
  | { kind: 'full'; reason: 'disk' | 'file_limit' };

interface PositionRow {
  contractId: string;
  cursor: string | null;
  startLedger: number | null;
}

/** Raw events, cursors and gaps. Events and the cursor behind them are one transaction, so neither is ever ahead. */
export class EventStore {
  private readonly db: Database.Database;
  private readonly statements;
  private readonly hasRoom;
  private readonly contractKeys = new Map<string, number>();

  constructor(
    file: QueueFile,
    private readonly clock: Clock,
    limits: RoomLimits,
  ) {
    this.db = file.db;
    this.hasRoom = makeRoomGauge(file, limits);
    this.statements = prepareStatements(file.db);
  }

  storePage(page: IntakePage): StoreResult {
    if (page.events.length > 0) {
      const room = this.hasRoom(page.events.reduce((sum, event) => sum + sizeOf(event), 0));
      if (room.kind === 'full') return room;
    }
    try {
      return this.db.transaction(() => this.writePage(page)).immediate();
    } catch (error) {
      // A key made in the transaction that was rolled back is nobody's.
      this.contractKeys.clear();
      if (!isFull(error)) throw error;
      return { kind: 'full', reason: 'disk' };
    }
  }

  /** Where each contract stands. One that was never read is not in it. */
  positions(): Map<string, StreamPosition> {
    const rows = this.statements.positions.all() as PositionRow[];
    const positions = new Map<string, StreamPosition>();
    for (const { contractId, cursor, startLedger } of rows) {
      if (cursor !== null) positions.set(contractId, { cursor });
      else if (startLedger !== null) positions.set(contractId, { startLedger });
    }
    return positions;
  }

  /** The newest ledger that was ever seen of the network whose events these are. Null before any. */
  tip(): ChainTip | null {
    const ledger = this.statements.counter.pluck().get(TIP_LEDGER) as number | undefined;
    const closedAt = this.statements.counter.pluck().get(TIP_CLOSED_AT) as number | undefined;
    return ledger === undefined || closedAt === undefined ? null : { ledger, closedAt };
  }

  /** What another ingester has seen of the network counts as seen. */
  raiseTip(tip: ChainTip): void {
    this.db.transaction(() => this.writeTip(tip)).immediate();
  }

  /** For a start on another network: what was seen of the old one says nothing of it. */
  forgetTip(): void {
    this.statements.forgetCounters.run(TIP_LEDGER, TIP_CLOSED_AT);
  }

  /** Open events, counted no further than `limit`: the cost doesn't grow with the backlog. */
  countOpen(limit: number): number {
    return this.statements.countOpen.pluck().get(limit) as number;
  }

  /**
   * Per contract, a cursor behind which nothing of it is open: whoever goes on from there misses nothing, even without
   * this file. Dead letters don't hold it back; they stay in this file until they are replayed.
   */
  lowWaterMarks(): Map<string, string> {
    return this.db.transaction(() => {
      const marks = new Map<string, string>();
      for (const [contractId, position] of this.positions()) {
        const reached = position.cursor ?? endOfLedger(position.startLedger - 1);
        const openLedger = this.statements.oldestOpenLedger.pluck().get(contractId) as number | undefined;
        const settled = openLedger === undefined ? reached : endOfLedger(openLedger - 1);
        marks.set(contractId, isAhead(settled, { cursor: reached }) ? reached : settled);
      }
      return marks;
    })();
  }

  /** Moves contracts to other positions, without events. For a start, and for taking over from another ingester. */
  moveTo(positions: ReadonlyMap<string, StreamPosition>): void {
    this.db
      .transaction(() => {
        for (const [contractId, { cursor = null, startLedger = null }] of positions) {
          this.statements.setPosition.run({ contractId, cursor, startLedger });
        }
      })
      .immediate();
  }

  gaps(): RecordedGap[] {
    return this.statements.gaps.all() as RecordedGap[];
  }

  recordGap(gap: Gap): void {
    this.statements.insertGap.run({ ...gap, foundAt: this.clock.now() });
  }

  /** Rows stored after `seq`, in order. */
  readAfter(seq: number, limit: number): { seq: number; event: RawEvent }[] {
    const rows = this.statements.readAfter.all(seq, limit) as { seq: number; eventData: string | Buffer }[];
    return rows.map((row) => ({ seq: row.seq, event: readEventData(row.eventData) }));
  }

  read(seq: number): RawEvent | null {
    const data = this.statements.read.pluck().get(seq) as string | Buffer | undefined;
    return data === undefined ? null : readEventData(data);
  }

  seqOf(eventId: string): number | null {
    return (this.statements.seqOf.pluck().get(eventId) as number | undefined) ?? null;
  }

  /** The lowest and highest sequence numbers kept, or null when the file holds no event. */
  seqRange(): { first: number; last: number } | null {
    const row = this.statements.seqRange.get() as { first: number | null; last: number | null };
    return row.first === null || row.last === null ? null : { first: row.first, last: row.last };
  }

  private writePage(page: IntakePage): StoreResult {
    const { insertEvent, insertMalformed, insertGap, setPosition, counter, setCounter } = this.statements;
    const enqueueTime = this.clock.now();
    const firstSeq = counter.pluck().get('nextSeq') as number;
    let seq = firstSeq;
    let contradictions = 0;
    for (const event of page.events) {
      const contract = this.contractKey(event.contractId);
      const data = serializeEvent(event);
      if (insertEvent.run(seq, event.id, data, enqueueTime, contract, event.ledger).changes > 0) seq += 1;
      else if (this.contradicts(event)) contradictions += 1;
    }
    for (const { id, contractId, data, reason } of page.malformed ?? []) {
      const contract = this.contractKey(contractId);
      seq += insertMalformed.run(
        seq,
        id,
        JSON.stringify(data),
        enqueueTime,
        enqueueTime,
        reason,
        contract,
      ).changes;
    }
    if (seq !== firstSeq) setCounter.run(seq, 'nextSeq');
    for (const gap of page.gaps ?? []) insertGap.run({ ...gap, foundAt: enqueueTime });
    if (page.position !== null) {
      const { cursor = null, startLedger = null } = page.position;
      for (const contractId of page.contractIds) setPosition.run({ contractId, cursor, startLedger });
    }
    if (page.tip) this.writeTip(page.tip);
    const offered = page.events.length + (page.malformed?.length ?? 0);
    const inserted = seq - firstSeq;
    return { kind: 'stored', inserted, duplicates: offered - inserted, contradictions };
  }

  private writeTip({ ledger, closedAt }: ChainTip): void {
    if (ledger <= (this.tip()?.ledger ?? 0)) return;
    this.statements.putCounter.run(TIP_LEDGER, ledger);
    this.statements.putCounter.run(TIP_CLOSED_AT, closedAt);
  }

  /** Compares what the network says, not how a server's version puts it. */
  private contradicts(event: RawEvent): boolean {
    const stored = this.read(this.seqOf(event.id) ?? 0);
    return stored !== null && essenceOf(stored) !== essenceOf(event);
  }

  private contractKey(contractId: string): number {
    const known = this.contractKeys.get(contractId);
    if (known !== undefined) return known;
    this.statements.addContract.run(contractId);
    const key = this.statements.contractKey.pluck().get(contractId) as number;
    this.contractKeys.set(contractId, key);
    return key;
  }
}

const TIP_LEDGER = 'tipLedger';
/** Epoch milliseconds. */
const TIP_CLOSED_AT = 'tipClosedAt';

/** Bytes of an event's JSON, roughly: what varies, and what every one has. */
const sizeOf = ({ topic, value }: RawEvent): number =>
  topic.reduce((sum, segment) => sum + segment.length, 400 + value.length);

const essenceOf = ({ contractId, ledger, txHash, topic, value }: RawEvent): string =>
  JSON.stringify([contractId, ledger, txHash, topic, value]);

function prepareStatements(db: Database.Database) {
  return {
    insertEvent: db.prepare(
      `INSERT INTO events (seq, id, eventData, status, enqueueTime, contract, ledger)
       VALUES (?, ?, ?, 'pending', ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
    ),
    insertMalformed: db.prepare(
      `INSERT INTO events (seq, id, eventData, status, enqueueTime, processTime, error, phase, contract, ledger)
       VALUES (?, ?, ?, 'failed', ?, ?, ?, 2, ?, 0) ON CONFLICT (id) DO NOTHING`,
    ),
    insertGap: db.prepare(
      `INSERT INTO gaps (contractId, fromLedger, toLedger, reason, foundAt)
       VALUES (@contractId, @fromLedger, @toLedger, @reason, @foundAt) ON CONFLICT DO NOTHING`,
    ),
    gaps: db.prepare('SELECT * FROM gaps ORDER BY id'),
    setPosition: db.prepare(
      `INSERT INTO contracts (contractId, cursor, startLedger) VALUES (@contractId, @cursor, @startLedger)
       ON CONFLICT (contractId) DO UPDATE SET cursor = excluded.cursor, startLedger = excluded.startLedger`,
    ),
    positions: db.prepare('SELECT contractId, cursor, startLedger FROM contracts'),
    addContract: db.prepare('INSERT INTO contracts (contractId) VALUES (?) ON CONFLICT DO NOTHING'),
    contractKey: db.prepare('SELECT key FROM contracts WHERE contractId = ?'),
    counter: db.prepare('SELECT value FROM counters WHERE name = ?'),
    setCounter: db.prepare('UPDATE counters SET value = ? WHERE name = ?'),
    putCounter: db.prepare(
      'INSERT INTO counters VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
    ),
    forgetCounters: db.prepare('DELETE FROM counters WHERE name IN (?, ?)'),
    countOpen: db.prepare('SELECT count(*) FROM (SELECT 1 FROM events WHERE phase = 0 LIMIT ?)'),
    oldestOpenLedger: db.prepare(
      `SELECT ledger FROM events INDEXED BY events_open
       WHERE contract = (SELECT key FROM contracts WHERE contractId = ?) AND phase = 0 AND ledger > 0 ORDER BY ledger LIMIT 1`,
    ),
    readAfter: db.prepare('SELECT seq, eventData FROM events WHERE seq > ? ORDER BY seq LIMIT ?'),
    read: db.prepare('SELECT eventData FROM events WHERE seq = ?'),
    seqOf: db.prepare('SELECT seq FROM events WHERE id = ?'),
    seqRange: db.prepare(
      'SELECT (SELECT min(seq) FROM events) AS first, (SELECT max(seq) FROM events) AS last',
    ),
  };
}
