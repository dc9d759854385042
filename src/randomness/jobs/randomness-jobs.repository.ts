import { type Connection, type Model, type mongo, Types } from 'mongoose';
import { ensureIndexes } from '../../platform/database/indexes';
import { nativeCollection } from '../../platform/database/native-collection';
import { queueIndex } from '../../queue/envelope-schema';
import { lowestUrgentLevel } from './priority';
import type { JobCounts } from './queue-metrics';
import {
  jobIndex,
  type RandomnessJob,
  randomnessJobModel,
  type StoredRandomnessJob,
} from './randomness-job.model';
import { jobStates, type JobState, type StateRecord } from './randomness-lifecycle';

export interface JobPage {
  jobs: StoredRandomnessJob[];
  /** Key of the next page; null on the last. */
  next: string | null;
}

const CLEANUP_BATCH = 1000;
const CLOCK_SLACK_MS = 3_600_000;

/**
 * The one owner of `randomnessJobs` beside the queue, which writes the envelope and whatever its lease holder hands it.
 * This class reads, and writes only to jobs that no lease can exist for.
 */
export class RandomnessJobs {
  readonly model: Model<StoredRandomnessJob>;

  constructor(connection: Connection, doneRetentionMs: number) {
    this.model = randomnessJobModel(connection, doneRetentionMs);
  }

  ensureIndexes(): Promise<void> {
    return ensureIndexes(this.model);
  }

  findByKey(key: string): Promise<StoredRandomnessJob | null> {
    return this.#collection.findOne({ key }, { hint: queueIndex.key });
  }

  /** The newest job of that request id: a contract that replaced another may have begun to count anew. */
  find(requestId: string): Promise<StoredRandomnessJob | null> {
    return this.#collection.findOne(
      { requestId },
      { sort: { requestId: 1, _id: -1 }, hint: jobIndex.request },
    );
  }

  /** By request id, or by the id of the document. */
  async findByAnyId(id: string): Promise<StoredRandomnessJob | null> {
    const byRequest = await this.find(id);
    if (byRequest !== null || !/^[0-9a-f]{24}$/.test(id)) return byRequest;
    return this.findById(id);
  }

  /** @param jobId 24 hex digits */
  findById(jobId: string): Promise<StoredRandomnessJob | null> {
    return this.#collection.findOne({ _id: new Types.ObjectId(jobId) });
  }

  /** The newest job of a raffle, for events that name no request. */
  findByRaffle(contractId: string, raffleId: number | null): Promise<StoredRandomnessJob | null> {
    return this.#collection.findOne(
      { raffleId, contractId },
      { sort: { raffleId: 1, _id: -1 }, hint: jobIndex.raffle },
    );
  }

  /** In order of arrival. */
  async pageByState(state: JobState, limit: number, after?: string): Promise<JobPage> {
    const jobs = await this.#collection
      .find(
        { currentState: state, ...(after === undefined ? {} : { _id: { $gt: new Types.ObjectId(after) } }) },
        { sort: { currentState: 1, _id: 1 }, limit: limit + 1, hint: jobIndex.state },
      )
      .toArray();
    const page = jobs.slice(0, limit);
    return { jobs: page, next: jobs.length > limit ? (page.at(-1)?._id.toHexString() ?? null) : null };
  }

  async countByState(): Promise<JobCounts> {
    const counts = await Promise.all(
      jobStates.map((state) =>
        this.#collection.countDocuments({ currentState: state }, { hint: jobIndex.state }),
      ),
    );
    return Object.fromEntries(jobStates.map((state, index) => [state, counts[index] ?? 0])) as JobCounts;
  }

  /**
   * Notes when the contract asked for a job that somebody had asked for by hand, what for, and a priority that is higher than
   * its own. No lease holder writes these fields. False when there is no such job (any more).
   */
  async adopt(
    _id: Types.ObjectId,
    {
      priorityLevel,
      ...request
    }: Pick<RandomnessJob, 'requestedAt' | 'requestedAtLedger' | 'prizeXlm' | 'priorityLevel'>,
  ): Promise<boolean> {
    // The lower number is the higher priority.
    const level = { $min: ['$priorityLevel', priorityLevel] };
    const { matchedCount } = await this.#collection.updateOne(
      { _id },
      [
        {
          $set: {
            ...request,
            priorityLevel: level,
            urgent: { $lte: [level, lowestUrgentLevel] },
          },
        },
      ],
      { hint: '_id_' },
    );
    return matchedCount === 1;
  }

  /** Gives a dead job (nobody holds it) its last state, or notes its breach of the SLA. False when it isn't the job that was seen any more. */
  async settleDead(
    seen: StoredRandomnessJob,
    record: Partial<StateRecord> & Pick<RandomnessJob, 'slaBreached'>,
    at: Date,
  ): Promise<boolean> {
    const { matchedCount } = await this.#collection.updateOne(
      { _id: seen._id, phase: 'dead', replays: seen.replays, currentState: seen.currentState },
      { $set: { ...record, updatedAt: at } },
      { hint: '_id_' },
    );
    return matchedCount === 1;
  }

  /** Removes a dead job whose record is closed. False when it isn't the job that was seen any more. */
  async removeDead({ _id, replays, epoch }: StoredRandomnessJob): Promise<boolean> {
    const { deletedCount } = await this.#collection.deleteOne(
      { _id, phase: 'dead', replays, epoch, deadLetterPending: false },
      { hint: '_id_' },
    );
    return deletedCount === 1;
  }

  /** Removes completed jobs that ended longer ago than `retentionMs`, by the database's clock. Dead letters stay. */
  async removeDoneBefore(retentionMs: number, nowMs: number): Promise<number> {
    let removed = 0;
    // `$expr` can't bound a scan. This process's clock does, generously; the server's decides.
    const horizon = new Date(nowMs - retentionMs + CLOCK_SLACK_MS);
    for (;;) {
      const expired = await this.#collection
        .find(
          {
            phase: 'done',
            finishedAt: { $lte: horizon },
            $expr: { $lte: ['$finishedAt', { $subtract: ['$$NOW', retentionMs] }] },
          },
          { projection: { _id: 1 }, sort: { finishedAt: 1 }, hint: queueIndex.done, limit: CLEANUP_BATCH },
        )
        .toArray();
      if (expired.length === 0) return removed;
      const { deletedCount } = await this.#collection.deleteMany(
        { _id: { $in: expired.map(({ _id }) => _id) }, phase: 'done' },
        { hint: '_id_' },
      );
      removed += deletedCount;
    }
  }

  get #collection(): mongo.Collection<StoredRandomnessJob> {
    return nativeCollection<StoredRandomnessJob>(this.model);
  }
}
