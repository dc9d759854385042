import type { DeadLetterRepository } from '../../queue/dead-letters';
import type { StoredRandomnessJob } from '../jobs/randomness-job.model';
import type { RandomnessJobs } from '../jobs/randomness-jobs.repository';

export interface DeadLetterDiscardDeps {
  pipeline: string;
  jobs: RandomnessJobs;
  records: DeadLetterRepository;
}

/**
 * Takes a dead job out of the world. Its record is closed first, then the job goes: whoever dies between the two leaves a
 * dead job that can be discarded again, and no record ever stays open for a job that is gone.
 */
export class DeadLetterDiscard {
  constructor(private readonly deps: DeadLetterDiscardDeps) {}

  /**
   * @param job as it was seen, with its death on record: a projection that came later would open a record again
   * @returns false where another command or a worker was faster, or its death is not on record yet
   */
  async discard(job: StoredRandomnessJob): Promise<boolean> {
    const { pipeline, jobs, records } = this.deps;
    if (job.phase !== 'dead' || job.deadLetterPending) return false;
    // As if it had left by a replay: later than all that is known of its death, earlier than its next one.
    await records.markReplayed(pipeline, job.key, job.epoch + 1);
    return jobs.removeDead(job);
  }
}
