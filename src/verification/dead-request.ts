import type { DeadLetterSubject } from '../queue/dead-letter.model';
import { verificationJobLifecycle } from './verification-job.lifecycle';
import type { VerificationJobs } from './verification-jobs.repository';
import type { StoredVerificationRequest } from './verification-request.model';

/** What a dead letter names of a request. */
export const describeDeadRequest = (request: StoredVerificationRequest): DeadLetterSubject => ({
  eventId: request.eventId,
  verificationJobId: request.verificationJobId.toHexString(),
  mediaCid: request.mediaCid,
  manifestCid: request.manifestCid,
  requester: request.requester,
});

/**
 * Fails the job of a dead request with the reason. May be repeated. A job that has ended stays as it is, and so does one
 * that a later claim has: then the request has been replayed meanwhile.
 */
export async function failJobOf(request: StoredVerificationRequest, jobs: VerificationJobs): Promise<void> {
  const last = request.errors.at(-1);
  let job = await jobs.ensure(request);
  while (!verificationJobLifecycle.isTerminal(job.status)) {
    const moved = await jobs.move({
      seen: job,
      to: 'failed',
      epoch: request.epoch,
      actor: 'worker',
      fields: {
        errorCode: last?.code ?? 'UNKNOWN',
        errorMessage: last?.message || 'the request was given up',
      },
    });
    if (moved.kind === 'superseded') return;
    job = moved.job;
  }
}
