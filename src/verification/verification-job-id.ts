import { createHash } from 'node:crypto';
import { Types } from 'mongoose';

/**
 * The job's id follows from the request's key and the number of its replay. Whoever creates the job, and however often
 * a process dies between writing the request and writing the job, it is the same job.
 */
export function verificationJobId(key: string, generation: number): Types.ObjectId {
  const digest = createHash('sha256')
    .update(JSON.stringify(['verification-job', key, generation]))
    .digest();
  return new Types.ObjectId(digest.subarray(0, 12));
}
