import type { JobHandler } from '../../worker/job-handler';
import type { RandomnessJob } from '../jobs/randomness-job.model';
import type { RandomnessProcessorService } from './randomness-processor.service';

export function randomnessHandler(processor: RandomnessProcessorService): JobHandler<RandomnessJob> {
  return async ({ lease, job }, context) => {
    const { outcome } = await processor.processRequest({ lease, job }, context);
    return outcome;
  };
}
