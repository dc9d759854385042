import type { mongo } from 'mongoose';
import { Types } from 'mongoose';
import { isDuplicateKey } from '../platform/database/faults';
import type { IndexedModel } from '../platform/database/indexes';
import { nativeCollection } from '../platform/database/native-collection';
import { deadLetterIndex, type DeadLetteredRequest } from './dead-letter.model';

export type StoredDeadLetter = DeadLetteredRequest & { _id: Types.ObjectId };

export interface DeadLetterPage {
  records: StoredDeadLetter[];
  /** Give it as `after` for the next page; null on the last. */
  next: string | null;
}

export interface DeadLetterQuery {
  pipeline?: string;
  limit: number;
  after?: string;
}

/** The collection `deadLetteredRequests`: a projection of the queues' dead jobs, for people and tools. */
export class DeadLetterRepository {
  constructor(private readonly model: IndexedModel) {}

  /** Writes the record, unless a later epoch's is there. Repeating it changes nothing. */
  async put(record: Omit<DeadLetteredRequest, 'replayedAt'>): Promise<void> {
    const { pipeline, requestId, epoch, ...rest } = record;
    try {
      await this.#collection.updateOne(
        { pipeline, requestId, epoch: { $lte: epoch } },
        { $set: { ...rest, epoch, replayedAt: null } },
        { upsert: true, hint: deadLetterIndex.request },
      );
    } catch (error) {
      // The filter missed a record with a later epoch, and the unique index kept the upsert from making a second one.
      if (!isDuplicateKey(error)) throw error;
    }
  }

  /** The job left the dead letters with this epoch. The record stays, as history and to refuse a late `put` of the earlier epoch. */
  async markReplayed(pipeline: string, requestId: string, epoch: number): Promise<void> {
    await this.#collection.updateOne(
      { pipeline, requestId, epoch: { $lt: epoch } },
      [{ $set: { epoch, replayedAt: '$$NOW' } }],
      { hint: deadLetterIndex.request },
    );
  }

  find(pipeline: string, requestId: string): Promise<StoredDeadLetter | null> {
    return this.#collection.findOne({ pipeline, requestId }, { hint: deadLetterIndex.request });
  }

  /** By the record's own id, as the list shows it; null also where the id is malformed. */
  findById(id: string): Promise<StoredDeadLetter | null> {
    if (!Types.ObjectId.isValid(id)) return Promise.resolve(null);
    return this.#collection.findOne({ _id: new Types.ObjectId(id) });
  }

  /** Those that are dead now, newest first. */
  async listOpen({ pipeline, limit, after }: DeadLetterQuery): Promise<DeadLetterPage> {
    const records = await this.#collection
      .find(
        {
          replayedAt: null,
          ...(pipeline === undefined ? {} : { pipeline }),
          ...(after === undefined ? {} : olderThan(after)),
        },
        { sort: { deadLetteredAt: -1, _id: -1 }, limit: limit + 1, hint: deadLetterIndex.open },
      )
      .toArray();
    const page = records.slice(0, limit);
    const last = page.at(-1);
    return { records: page, next: records.length > limit && last !== undefined ? cursorOf(last) : null };
  }

  countOpen(): Promise<number> {
    return this.#collection.countDocuments({ replayedAt: null }, { hint: deadLetterIndex.open });
  }

  /** Pipelines without any are left out. */
  countOpenByPipeline(): Promise<{ pipeline: string; count: number }[]> {
    return this.#collection
      .aggregate<{ pipeline: string; count: number }>(
        [
          { $match: { replayedAt: null } },
          { $group: { _id: '$pipeline', count: { $sum: 1 } } },
          { $project: { _id: 0, pipeline: '$_id', count: 1 } },
        ],
        { hint: deadLetterIndex.openByPipeline },
      )
      .toArray();
  }

  get #collection(): mongo.Collection<DeadLetteredRequest> {
    return nativeCollection<DeadLetteredRequest>(this.model);
  }
}

const cursorOf = ({ deadLetteredAt, _id }: StoredDeadLetter): string =>
  `${deadLetteredAt.getTime()}.${_id.toHexString()}`;

function olderThan(cursor: string): mongo.Filter<DeadLetteredRequest> {
  const [time = '', id = ''] = cursor.split('.');
  if (!/^\d{1,15}$/.test(time) || !Types.ObjectId.isValid(id)) return {};
  const deadLetteredAt = new Date(Number(time));
  return {
    // Bounds the index scan, which the alternatives alone would not.
    deadLetteredAt: { $lte: deadLetteredAt },
    $or: [
      { deadLetteredAt: { $lt: deadLetteredAt } },
      { deadLetteredAt, _id: { $lt: new Types.ObjectId(id) } },
    ],
  };
}
