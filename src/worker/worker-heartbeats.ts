import type { mongo } from 'mongoose';
import type { IndexedModel } from '../platform/database/indexes';
import { nativeCollection } from '../platform/database/native-collection';
import { heartbeatIndex, type WorkerHeartbeat } from './worker-heartbeat.model';

export type HeartbeatReport = Omit<WorkerHeartbeat, 'startedAt' | 'lastHeartbeatAt'>;

export interface WorkerHealthQuery {
  /** A worker is alive while it reports running and its last heartbeat is younger than this. */
  staleMs: number;
  /** Workers listed, the most recently heard of first. All are counted. */
  limit: number;
}

export interface WorkerView extends WorkerHeartbeat {
  alive: boolean;
  /** Age of the last heartbeat. */
  ageMs: number;
}

export interface WorkerHealth {
  /** At least one worker is alive. */
  healthy: boolean;
  alive: number;
  workers: WorkerView[];
}

/** The collection `workerHeartbeats`. Written and judged by the database's clock alone. */
export class WorkerHeartbeatRepository {
  constructor(private readonly model: IndexedModel) {}

  async write(report: HeartbeatReport): Promise<void> {
    const {
      workerId,
      status,
      lastProcessedLedger,
      processedCount,
      failedCount,
      lastProcessingMs,
      pipelines,
    } = report;
    await this.#collection.updateOne(
      { workerId },
      [
        {
          $set: {
            status,
            startedAt: { $ifNull: ['$startedAt', '$$NOW'] },
            lastHeartbeatAt: '$$NOW',
            lastProcessedLedger,
            processedCount,
            failedCount,
            lastProcessingMs,
            pipelines: { $literal: pipelines },
          },
        },
      ],
      { upsert: true, hint: heartbeatIndex.worker },
    );
  }

  async readHealth({ staleMs, limit }: WorkerHealthQuery): Promise<WorkerHealth> {
    const ageMs = { $subtract: ['$$NOW', '$lastHeartbeatAt'] };
    const isAlive = { $and: [{ $eq: ['$status', 'running'] }, { $lt: [ageMs, staleMs] }] };
    const [workers, counted] = await Promise.all([
      this.#collection
        .aggregate<WorkerView>(
          [
            { $sort: { lastHeartbeatAt: -1 } },
            { $limit: limit },
            { $set: { ageMs: { $toLong: ageMs }, alive: isAlive } },
            { $project: { _id: 0 } },
          ],
          { hint: heartbeatIndex.recent },
        )
        .toArray(),
      // Expired heartbeats keep this collection small, so the exact guard may look at each.
      this.#collection
        .aggregate<{ alive: number }>([{ $match: { $expr: isAlive } }, { $count: 'alive' }], {
          hint: heartbeatIndex.recent,
        })
        .toArray(),
    ]);
    const alive = counted[0]?.alive ?? 0;
    return { healthy: alive > 0, alive, workers };
  }

  get #collection(): mongo.Collection<WorkerHeartbeat> {
    return nativeCollection<WorkerHeartbeat>(this.model);
  }
}
