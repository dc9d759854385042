import type { Connection } from 'mongoose';
import { ensureIndexes } from '../../src/platform/database/indexes';
import { silentLogger } from '../../src/platform/logger';
import { deadLetterModel } from '../../src/queue/dead-letter.model';
import { DeadLetterProjector } from '../../src/queue/dead-letter-projector';
import { DeadLetterRepository } from '../../src/queue/dead-letters';
import type { MongoWorkerQueue } from '../../src/queue/mongo-worker-queue';
import { workSource, type WorkSource, type WorkSourceOptions } from '../../src/worker/work-source';
import type { WorkerEventMap } from '../../src/worker/worker-events';
import { workerHeartbeatModel } from '../../src/worker/worker-heartbeat.model';
import { WorkerHeartbeatRepository } from '../../src/worker/worker-heartbeats';
import { WorkerPool, type WorkerPoolOptions } from '../../src/worker/worker-pool';
import type { Parcel } from './queue-fixture';

export async function heartbeatRepository(connection: Connection): Promise<WorkerHeartbeatRepository> {
  const model = workerHeartbeatModel(connection);
  await ensureIndexes(model);
  return new WorkerHeartbeatRepository(model);
}

export async function deadLetterRepository(connection: Connection): Promise<DeadLetterRepository> {
  const model = deadLetterModel(connection);
  await ensureIndexes(model);
  return new DeadLetterRepository(model);
}

export function parcelProjector(
  queue: MongoWorkerQueue<Parcel>,
  records: DeadLetterRepository,
  pipeline = 'parcels',
): DeadLetterProjector<Parcel> {
  return new DeadLetterProjector({
    pipeline,
    queue,
    records,
    describe: (job) => ({ requester: job.label }),
    logger: silentLogger(),
  });
}

/** Quick polling and immediate retries, for tests. */
export function parcelSource(
  options: Pick<WorkSourceOptions<Parcel>, 'queue' | 'handler'> & Partial<WorkSourceOptions<Parcel>>,
): WorkSource {
  return workSource<Parcel>({
    pipeline: 'parcels',
    lanes: 1,
    retryPolicy: { baseMs: 0, multiplier: 2, capMs: 0 },
    deadLetters: { projectOne: () => Promise.resolve(), projectPending: () => Promise.resolve(0) },
    ...options,
  });
}

export function testPool(
  options: Pick<WorkerPoolOptions, 'sources' | 'heartbeats'> & Partial<WorkerPoolOptions>,
): WorkerPool {
  return new WorkerPool({
    logger: silentLogger(),
    pollIntervalMs: 100,
    batchSize: 10,
    heartbeatIntervalMs: 60_000,
    drainTimeoutMs: 5000,
    ...options,
  });
}

/** The next event of that name that satisfies `matches`. Rejects after `withinMs`. */
export function waitFor<Name extends keyof WorkerEventMap>(
  { events }: WorkerPool,
  name: Name,
  matches: (...args: WorkerEventMap[Name]) => boolean = () => true,
  withinMs = 10_000,
): Promise<WorkerEventMap[Name]> {
  return new Promise((resolve, reject) => {
    const listener = (...args: unknown[]): void => {
      if (!matches(...(args as WorkerEventMap[Name]))) return;
      clearTimeout(timer);
      events.off(name, listener as never);
      resolve(args as WorkerEventMap[Name]);
    };
    const timer = setTimeout(() => {
      events.off(name, listener as never);
      reject(new Error(`no ${name} within ${withinMs} ms`));
    }, withinMs);
    events.on(name, listener as never);
  });
}

/** Polls a condition that has no signal (another process, the database) until it holds. */
export async function until(
  what: string,
  holds: () => Promise<boolean> | boolean,
  withinMs = 15_000,
): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`${what}: not within ${withinMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
