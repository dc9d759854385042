import { randomUUID } from 'node:crypto';
import { type Connection, type Model, type mongo, Schema } from 'mongoose';
import { nativeCollection } from '../../platform/database/native-collection';
import type { Clock } from '../../platform/clock';
import type { WorkerId } from '../../platform/ids';
import type { Logger } from '../../platform/logger';
import { ordinaryLimit, type ProcessingSlot, type ProcessingSlots, type SlotLimit } from './processing-slots';

interface StoredSlot {
  /** 0 … max − 1. */
  _id: number;
  /** Made by the holder; null when free. */
  token: string | null;
  workerId: WorkerId | null;
  /** Whether an urgent job holds it. */
  urgent: boolean;
  /** Database clock. A slot whose holder died is free from then on. */
  expiresAt: Date;
}

export interface GlobalSlotsOptions {
  connection: Connection;
  /** The process's own limit, taken first. */
  local: ProcessingSlots;
  limit: SlotLimit;
  workerId: WorkerId;
  leaseMs: number;
  clock: Clock;
  logger: Logger;
}

const RENEWALS_PER_LEASE = 3;
/** How long a refusal is believed, so that lanes don't claim again and again what there is no slot for. */
const FULL_FOR_MS = 250;
const freeSlot = { token: null, workerId: null, urgent: false, expiresAt: new Date(0) };

const slotSchema = new Schema<StoredSlot>(
  {
    _id: { type: Number, required: true },
    token: { type: String, default: null },
    workerId: { type: String, default: null },
    urgent: { type: Boolean, required: true },
    expiresAt: { type: Date, required: true },
  },
  { collection: 'randomnessSlots', autoIndex: false, versionKey: false },
);

const slotModel = (connection: Connection): Model<StoredSlot> =>
  connection.model<StoredSlot>('RandomnessSlot', slotSchema);

/**
 * One limit for all processes: a document a slot, held under a lease that is renewed while the work goes on. A crash leaks
 * none; it costs one lease of time. Losing one's lease (a process that stood still for long) can let one job too many run
 * for a moment; nothing but the limit depends on it.
 */
export class GlobalSlots implements ProcessingSlots {
  readonly #options: GlobalSlotsOptions;
  readonly #model: Model<StoredSlot>;
  readonly #tokens = new Set<string>();
  /** Monotonic; until then there was no slot for jobs of that kind. */
  readonly #fullUntilMs = { urgent: 0, ordinary: 0 };
  #renewal: NodeJS.Timeout | undefined;

  constructor(options: GlobalSlotsOptions) {
    this.#options = options;
    this.#model = slotModel(options.connection);
  }

  get held(): number {
    return this.#tokens.size;
  }

  /** The other processes' share isn't known without asking: this goes by our own limit and by the last refusal. */
  canAcquire(urgent: boolean): boolean {
    const { local, clock } = this.#options;
    return local.canAcquire(urgent) && clock.monotonicMs() >= this.#fullUntilMs[kindOf(urgent)];
  }

  /** Makes the documents of slots that are not there yet. Safe from any number of processes. */
  async ensureSlots(): Promise<void> {
    await this.#collection.bulkWrite(
      Array.from({ length: this.#options.limit.max }, (_, _id) => ({
        updateOne: {
          filter: { _id },
          update: { $setOnInsert: freeSlot },
          upsert: true,
        },
      })),
      { ordered: false },
    );
  }

  async acquire(urgent: boolean): Promise<ProcessingSlot | null> {
    const local = await this.#options.local.acquire(urgent);
    if (local === null) return null;
    try {
      const token = await this.#take(urgent);
      if (token !== null) return { release: () => this.#release(token, local) };
      this.#fullUntilMs[kindOf(urgent)] = this.#options.clock.monotonicMs() + FULL_FOR_MS;
    } catch (error) {
      await local.release();
      throw error;
    }
    await local.release();
    return null;
  }

  /** Stops renewing. What is still held runs out by itself. */
  close(): void {
    clearInterval(this.#renewal);
    this.#renewal = undefined;
  }

  async #take(urgent: boolean): Promise<string | null> {
    const { limit, workerId, leaseMs } = this.#options;
    const token = randomUUID();
    if (!urgent && (await this.#heldByOrdinary()) >= ordinaryLimit(limit)) return null;
    const slot = await this.#collection.findOneAndUpdate(
      { _id: { $lt: limit.max }, $expr: { $lte: ['$expiresAt', '$$NOW'] } },
      [
        {
          $set: {
            token: { $literal: token },
            workerId: { $literal: workerId },
            urgent,
            expiresAt: this.#leaseEnd(leaseMs),
          },
        },
      ],
      { sort: { _id: 1 }, returnDocument: 'after' },
    );
    if (slot === null) return null;
    // Two that counted at the same moment may both have come in. Both step back then: too few for a moment, never too many.
    if (!urgent && (await this.#heldByOrdinary()) > ordinaryLimit(limit)) {
      await this.#free(token);
      return null;
    }
    this.#tokens.add(token);
    this.#renewal ??= setInterval(() => void this.#renew(), leaseMs / RENEWALS_PER_LEASE).unref();
    return token;
  }

  #heldByOrdinary(): Promise<number> {
    return this.#collection.countDocuments({
      urgent: false,
      token: { $ne: null },
      $expr: { $gt: ['$expiresAt', '$$NOW'] },
    });
  }

  async #free(token: string): Promise<void> {
    await this.#collection.updateOne({ token }, { $set: freeSlot });
  }

  async #release(token: string, local: ProcessingSlot): Promise<void> {
    this.#tokens.delete(token);
    if (this.#tokens.size === 0) this.close();
    await local.release();
    try {
      await this.#free(token);
    } catch (error) {
      this.#options.logger.warn({ err: error }, 'a slot could not be given back; it runs out by itself');
    }
  }

  async #renew(): Promise<void> {
    const tokens = [...this.#tokens];
    try {
      const { matchedCount } = await this.#collection.updateMany({ token: { $in: tokens } }, [
        { $set: { expiresAt: this.#leaseEnd(this.#options.leaseMs) } },
      ]);
      if (matchedCount < tokens.length && tokens.every((token) => this.#tokens.has(token))) {
        this.#options.logger.warn('a processing slot was lost to another process');
      }
    } catch (error) {
      this.#options.logger.warn({ err: error }, 'processing slots could not be renewed');
    }
  }

  #leaseEnd(leaseMs: number): unknown {
    return { $add: ['$$NOW', leaseMs] };
  }

  get #collection(): mongo.Collection<StoredSlot> {
    return nativeCollection<StoredSlot>(this.#model);
  }
}

const kindOf = (urgent: boolean): 'urgent' | 'ordinary' => (urgent ? 'urgent' : 'ordinary');
