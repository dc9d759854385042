import type { mongo } from 'mongoose';
import type { QueueEnvelope } from './envelope';
import { queueIndex } from './envelope-schema';
import type { ServerClock } from './server-clock';
import { sweepPipeline } from './update-pipelines';

/** How far the estimate of the server's clock may be off before a due job is seen late. */
const CLOCK_SLACK_MS = 10_000;
const BATCH_SIZE = 200;

export interface Tidied {
  /** Waiting jobs whose time had come and that are ready now. */
  staged: number;
  /** Expired leases that were taken away. */
  swept: number;
}

/**
 * Moves what time alone moves. Any number of processes may do it at once: each update repeats every condition of the search,
 * so a job that was claimed, renewed or finished in between is left alone.
 *
 * `$expr` can't use a partial index. So a plain predicate bounds the scan by an estimate of the server's clock, and `$$NOW`
 * decides.
 */
export class QueueJanitor {
  constructor(
    private readonly collection: () => mongo.Collection<QueueEnvelope>,
    private readonly serverClock: ServerClock,
  ) {}

  /** One bounded batch of each kind. */
  async tidy(): Promise<Tidied> {
    const horizon = new Date((await this.serverClock.estimateMs()) + CLOCK_SLACK_MS);
    const staged = await this.#moveDue(
      { phase: 'waiting', dueAt: { $lte: horizon }, $expr: { $lte: ['$dueAt', '$$NOW'] } },
      { dueAt: 1 },
      queueIndex.waiting,
      [{ $set: { phase: 'ready' } }],
    );
    const swept = await this.#moveDue(
      {
        phase: 'leased',
        'lease.expiresAt': { $lte: horizon },
        $expr: { $lte: ['$lease.expiresAt', '$$NOW'] },
      },
      { 'lease.expiresAt': 1 },
      queueIndex.leases,
      sweepPipeline(),
    );
    return { staged, swept };
  }

  async #moveDue(
    due: mongo.Filter<QueueEnvelope>,
    sort: mongo.Sort,
    hint: string,
    update: mongo.Document[],
  ): Promise<number> {
    const found = await this.collection()
      .find(due, { projection: { _id: 1 }, sort, hint, limit: BATCH_SIZE })
      .toArray();
    if (found.length === 0) return 0;
    const ids = found.map(({ _id }) => _id);
    const { modifiedCount } = await this.collection().updateMany({ ...due, _id: { $in: ids } }, update, {
      hint: '_id_',
    });
    return modifiedCount;
  }
}
