import type { mongo } from 'mongoose';
import { type Connection, type Model, Schema } from 'mongoose';
import { z } from 'zod';
import { isDuplicateKey } from '../../platform/database/faults';
import type { Clock } from '../../platform/clock';
import { ensureIndexes } from '../../platform/database/indexes';
import { nativeCollection } from '../../platform/database/native-collection';
import type { StoredRandomness } from '../jobs/randomness-job.model';
import {
  type AuditEntry,
  type AuditEvent,
  type AuditRow,
  chainRow,
  type ChainFault,
  faultOf,
} from './audit-chain';

type StoredAuditRow = Omit<AuditRow, 'seq'> & { _id: number };

export interface AuditPage {
  rows: AuditRow[];
  /** Key of the next page (older rows); null on the last. */
  next: number | null;
}

export interface AuditQuery {
  requestId?: string;
  raffleId?: number;
  /** Only rows of these. */
  events?: readonly AuditEvent[];
  limit: number;
  /** Only rows before this one. */
  before?: number;
}

export type ChainVerdict =
  { kind: 'intact'; rows: number; lastHash: string | null } | { kind: 'broken'; fault: ChainFault };

const auditIndex = {
  event: 'audit_event',
  request: 'audit_request',
  raffle: 'audit_raffle',
  rescue: 'audit_rescue',
} as const;
const WALK_BATCH = 1000;

const required = true;

const auditSchema = new Schema(
  {
    _id: { type: Number, required },
    at: { type: String, required },
    event: { type: String, required },
    eventKey: { type: String, required },
    requestId: { type: String, required },
    raffleId: { type: Number, default: null },
    data: { type: Schema.Types.Mixed, required },
    previousHash: { type: String, required },
    hash: { type: String, required },
  },
  { collection: 'randomnessAudit', autoIndex: false, versionKey: false },
);
// One row for one event.
auditSchema.index({ eventKey: 1 }, { name: auditIndex.event, unique: true });
auditSchema.index({ requestId: 1, _id: -1 }, { name: auditIndex.request });
auditSchema.index({ raffleId: 1, _id: -1 }, { name: auditIndex.raffle });
auditSchema.index({ event: 1, _id: -1 }, { name: auditIndex.rescue });

const auditModel = (connection: Connection): Model<StoredAuditRow> =>
  connection.model<StoredAuditRow>('RandomnessAudit', auditSchema as unknown as Schema<StoredAuditRow>);

/** The newest row that was stored, by a document of its own: a chain says nothing of what was cut off its end. */
interface StoredHead {
  _id: 'head';
  seq: number;
  hash: string;
}

const headSchema = new Schema(
  {
    _id: { type: String, required },
    seq: { type: Number, required },
    hash: { type: String, required },
  },
  { collection: 'randomnessAuditHead', autoIndex: false, versionKey: false },
);

const headModel = (connection: Connection): Model<StoredHead> =>
  connection.model<StoredHead>('RandomnessAuditHead', headSchema as unknown as Schema<StoredHead>);

const revealedSchema: z.ZodType<StoredRandomness> = z.object({
  method: z.enum(['VRF', 'PRNG', 'COMMIT_REVEAL']),
  messageVersion: z.union([z.literal(1), z.literal(2)]),
  seed: z.string(),
  proof: z.string(),
  oracleKey: z.string(),
});

/** One delivery of a job is on record, however often it is looked at. */
export const revealedEventKey = (jobKey: string): string => `${jobKey}:revealed`;

interface Waiting {
  entry: AuditEntry;
  resolve: () => void;
  reject: (error: unknown) => void;
}

/**
 * The audit trail: append-only, each row chained to the one before by hash, one row per event. Any number of processes
 * append; the number of a row is its key, so that of two that would follow the same row one is refused and tries the next
 * number. Within a process rows are appended together, which keeps such collisions few.
 */
export class AuditTrail {
  readonly #model: Model<StoredAuditRow>;
  readonly #headModel: Model<StoredHead>;
  readonly #clock: Clock;
  readonly #waiting: Waiting[] = [];
  #appending = false;

  constructor(connection: Connection, clock: Clock) {
    this.#model = auditModel(connection);
    this.#headModel = headModel(connection);
    this.#clock = clock;
  }

  ensureIndexes(): Promise<void> {
    return ensureIndexes(this.#model);
  }

  /** Resolves once the row (or an earlier one of the same event) is stored. */
  append(entry: AuditEntry): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ entry, resolve, reject });
      if (!this.#appending) void this.#appendWaiting();
    });
  }

  /** What a job delivered, by its key; null where it is not on record. */
  async revealedOf(jobKey: string): Promise<StoredRandomness | null> {
    const row = await this.#collection.findOne(
      { eventKey: revealedEventKey(jobKey) },
      { hint: auditIndex.event },
    );
    if (row === null) return null;
    const { method, messageVersion, seed, proof, oraclePublicKey: oracleKey } = row.data;
    return revealedSchema.parse({ method, messageVersion, seed, proof, oracleKey });
  }

  /** Newest first. */
  async page(query: AuditQuery): Promise<AuditPage> {
    const { requestId, raffleId, events, limit, before } = query;
    const filter: mongo.Filter<StoredAuditRow> = {
      ...(requestId === undefined ? {} : { requestId }),
      ...(raffleId === undefined ? {} : { raffleId }),
      ...(events === undefined ? {} : { event: { $in: [...events] } }),
      ...(before === undefined ? {} : { _id: { $lt: before } }),
    };
    const found = await this.#collection.find(filter, { sort: { _id: -1 }, limit: limit + 1 }).toArray();
    const rows = found.slice(0, limit).map(asRow);
    return { rows, next: found.length > limit ? (rows.at(-1)?.seq ?? null) : null };
  }

  /** The rows of these events, as far as they happened. */
  async findByKeys(eventKeys: readonly string[]): Promise<AuditRow[]> {
    const rows = await this.#collection
      .find({ eventKey: { $in: [...eventKeys] } }, { hint: auditIndex.event })
      .toArray();
    return rows.map(asRow);
  }

  /**
   * Walks the whole chain from its first row, and on to where it is known to have come. Whoever can rewrite all of the
   * database can rewrite that as well: keep the last hash elsewhere now and then.
   */
  async verifyChain(): Promise<ChainVerdict> {
    // Before the walk: rows that are appended meanwhile are no fault.
    const head = await this.#headCollection.findOne({ _id: 'head' });
    let previous: AuditRow | null = null;
    for await (const stored of this.#collection.find({}, { sort: { _id: 1 }, batchSize: WALK_BATCH })) {
      const row = asRow(stored);
      const fault = faultOf(row, previous) ?? this.#headFault(row, head);
      if (fault !== null) return { kind: 'broken', fault };
      previous = row;
    }
    const rows = previous?.seq ?? 0;
    if (head !== null && head.seq > rows)
      return { kind: 'broken', fault: { seq: rows + 1, problem: 'cut_off' } };
    return { kind: 'intact', rows, lastHash: previous?.hash ?? null };
  }

  async #appendWaiting(): Promise<void> {
    this.#appending = true;
    try {
      for (let batch = this.#waiting.splice(0); batch.length > 0; batch = this.#waiting.splice(0)) {
        try {
          await this.#appendBatch(batch.map(({ entry }) => entry));
          for (const { resolve } of batch) resolve();
        } catch (error) {
          for (const { reject } of batch) reject(error);
        }
      }
    } finally {
      this.#appending = false;
    }
  }

  async #appendBatch(entries: readonly AuditEntry[]): Promise<void> {
    for (;;) {
      const missing = await this.#notYetThere(entries);
      if (missing.length === 0) return;
      const at = new Date(this.#clock.now()).toISOString();
      let previous = await this.#last();
      const rows = missing.map((entry) => (previous = chainRow(entry, previous, at)));
      try {
        // In order: when a number is taken, what follows it is not stored either, for it would hang on a row of ours
        // that isn't there.
        await this.#collection.insertMany(rows.map(toStored), { ordered: true });
        if (previous !== null) await this.#moveHead(previous);
      } catch (error) {
        if (!isDuplicateKey(error)) throw error;
      }
    }
  }

  async #notYetThere(entries: readonly AuditEntry[]): Promise<AuditEntry[]> {
    const byKey = new Map(entries.map((entry) => [entry.eventKey, entry]));
    const found = await this.#collection
      .find({ eventKey: { $in: [...byKey.keys()] } }, { projection: { eventKey: 1 }, hint: auditIndex.event })
      .toArray();
    for (const { eventKey } of found) byKey.delete(eventKey);
    return [...byKey.values()];
  }

  /** Forward only: of several processes the one that appended last has the last word. */
  async #moveHead({ seq, hash }: AuditRow): Promise<void> {
    try {
      await this.#headCollection.updateOne(
        { _id: 'head', seq: { $lt: seq } },
        { $set: { seq, hash } },
        { upsert: true },
      );
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
    }
  }

  #headFault(row: AuditRow, head: StoredHead | null): ChainFault | null {
    return row.seq === head?.seq && row.hash !== head.hash ? { seq: row.seq, problem: 'rewritten' } : null;
  }

  async #last(): Promise<AuditRow | null> {
    const [last] = await this.#collection.find({}, { sort: { _id: -1 }, limit: 1 }).toArray();
    return last === undefined ? null : asRow(last);
  }

  get #headCollection(): mongo.Collection<StoredHead> {
    return nativeCollection<StoredHead>(this.#headModel);
  }

  get #collection(): mongo.Collection<StoredAuditRow> {
    return nativeCollection<StoredAuditRow>(this.#model);
  }
}

function asRow({ _id, ...row }: StoredAuditRow): AuditRow {
  return { seq: _id, ...row };
}

function toStored({ seq, ...row }: AuditRow): StoredAuditRow {
  return { _id: seq, ...row };
}
