import type { DeadLetterRepository } from '../../queue/dead-letters';
import type { RandomnessDeadLetters } from '../randomness-dead-letters';
import type { StoredRandomnessJob } from '../randomness-job.model';
import type { RandomnessJobs } from '../randomness-jobs.repository';

export interface DeadLetterDiscardDeps {
  pipeline: string;
  jobs: RandomnessJobs;
  records: DeadLetterRepository;
  projector: RandomnessDeadLetters;
}

export type DiscardResult =
  | { kind: 'discarded'; job: StoredRandomnessJob }
  /** How it ended is still being found out: a transaction of it may land. */
  | { kind: 'undecided' }
  /** Another command or worker was faster. */
  | { kind: 'changed' };

/**
 * Takes a dead job out of the world. Its record is closed first, then the job goes: whoever dies between the two leaves a
 * dead job that can be discarded again, and no record ever stays open for a job that is gone.
 */
export class DeadLetterDiscard {
  constructor(private readonly deps: DeadLetterDiscardDeps) {}

  async discard(seen: StoredRandomnessJob): Promise<DiscardResult> {
    const { pipeline, jobs, records, projector } = this.deps;
    let job: StoredRandomnessJob | null = seen;
    if (job.deadLetterPending) {
      // A projection that comes late must find nothing to open again.
      await projector.projectOne(job._id.toHexString());
      job = await jobs.findById(job._id.toHexString());
    }
    if (job?.phase !== 'dead') return { kind: 'changed' };
    if (job.deadLetterPending) return { kind: 'undecided' };
    // As if it had left by a replay: later than all that is known of its death, earlier than its next one.
    await records.markReplayed(pipeline, job.key, job.epoch + 1);
    return (await jobs.removeDead(job)) ? { kind: 'discarded', job } : { kind: 'changed' };
  }
}
