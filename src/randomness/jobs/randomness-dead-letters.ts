import { DeadLetterProjector, type DeadLetterProjectorOptions } from '../../queue/dead-letter-projector';
import type { ReplayResult } from '../../queue/mongo-worker-queue';
import type { PayloadPatch } from '../../queue/worker-queue';
import type { RandomnessJob } from './randomness-job.model';
import { replayedRecord } from './randomness-lifecycle';

/** Replays begin a new life of the state record, in the write that makes the job ready. */
export class RandomnessDeadLetters extends DeadLetterProjector<RandomnessJob> {
  readonly #queue: DeadLetterProjectorOptions<RandomnessJob>['queue'];

  constructor(options: DeadLetterProjectorOptions<RandomnessJob>) {
    super(options);
    this.#queue = options.queue;
  }

  override async replay(
    jobId: string,
    patch: PayloadPatch<RandomnessJob> = {},
    reason = 'Replayed',
  ): Promise<ReplayResult<RandomnessJob>> {
    // First, for it may have given the job its last state a moment ago, which the new life's record has to hold.
    await this.projectOne(jobId);
    const job = await this.#queue.find(jobId);
    if (job === null) return { kind: 'not_found' };
    const at = new Date();
    // The seed stays: it is fixed for good. Whether a transaction of the old life is still on its way is the submitter's
    // to know, and it builds no second one while it is.
    return super.replay(jobId, {
      ...replayedRecord(job, at, reason),
      attemptCount: 0,
      txHash: null,
      updatedAt: at,
      ...patch,
    });
  }
}
