import type { RetryPolicy } from '../queue/retry-policy';
import type { WorkerQueue } from '../queue/worker-queue';
import type { JobHandler } from './job-handler';
import { Lane, type LaneEnvironment, type LaneHandle } from './lane';
import type { RenewableQueue } from './lease-keeper';

/** The queue of a pipeline, as a pool needs it. `MongoWorkerQueue` is one. */
export interface PoolQueue<Payload> extends WorkerQueue<Payload>, RenewableQueue {
  /** @throws PermanentError when the collection lacks an index. */
  verify(): Promise<void>;
  tidy(): Promise<{ staged: number; swept: number }>;
}

export interface WorkSourceOptions<Payload extends object> {
  pipeline: string;
  queue: PoolQueue<Payload>;
  handler: JobHandler<Payload>;
  /** Jobs that one process works on at the same time. */
  lanes: number;
  retryPolicy: RetryPolicy;
  /** Brings the dead letters in line: that of one job right after its death, and whatever is behind now and then. */
  deadLetters: {
    projectOne(jobId: string): Promise<void>;
    projectPending(signal?: AbortSignal): Promise<number>;
  };
}

/** Work of one pipeline for a pool, which needn't know what its jobs look like. */
export interface WorkSource {
  readonly pipeline: string;
  readonly lanes: number;
  verify(): Promise<void>;
  /** Due jobs and expired leases. @returns whether jobs became ready */
  tidy(): Promise<boolean>;
  /** Dead letters that are behind. Takes as long as the pipeline needs to find out what became of each. */
  projectDeadLetters(signal: AbortSignal): Promise<void>;
  createLane(index: number, environment: LaneEnvironment): LaneHandle;
}

export function workSource<Payload extends object>(options: WorkSourceOptions<Payload>): WorkSource {
  const { pipeline, lanes, queue, deadLetters } = options;
  return {
    pipeline,
    lanes,
    verify: () => queue.verify(),
    tidy: async () => {
      const { staged, swept } = await queue.tidy();
      return staged + swept > 0;
    },
    projectDeadLetters: async (signal) => {
      await deadLetters.projectPending(signal);
    },
    createLane: (index, environment) => new Lane(options, index, environment),
  };
}
