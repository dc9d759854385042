import { Types } from 'mongoose';
import { readyIndex } from './envelope-schema';

/** Narrows a claim to part of what is ready. Its index has to hold just that part, in claim order. */
export interface ClaimScope {
  filter: Record<string, unknown>;
  index: Record<string, 1>;
}

export const everythingReady: ClaimScope = { filter: {}, index: readyIndex };

/** One job that nobody holds, due or not. */
export const onlyJob = (jobId: string): ClaimScope => ({
  filter: { _id: new Types.ObjectId(jobId), phase: { $in: ['ready', 'waiting'] } },
  index: { _id: 1 },
});
