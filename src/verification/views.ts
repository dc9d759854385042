import type { VerificationJob } from './verification-job.model';
import type { StoredVerificationRequest } from './verification-request.model';

export type RequestStatus = 'pending' | 'processing' | 'completed' | 'rejected' | 'failed';

/** A request as the API shows it: nothing of leases, and no lane or worker by name. */
export function requestView(request: StoredVerificationRequest) {
  return {
    requestId: request._id.toHexString(),
    eventId: request.eventId,
    status: requestStatus(request),
    manifestCid: request.manifestCid,
    mediaCid: request.mediaCid,
    requester: request.requester,
    jobId: request.verificationJobId.toHexString(),
    attempts: request.attempts,
    contentHash: request.contentHash,
    manifestHash: request.manifestHash,
    canonicalManifestHash: request.canonicalManifestHash,
    transactionHash: request.transactionHash,
    certificateId: request.certificateId,
    rejection: request.rejection,
    lastError: lastErrorOf(request),
    enqueuedAt: request.enqueuedAt,
    completedAt: request.finishedAt,
  };
}

export type RequestView = ReturnType<typeof requestView>;

function requestStatus(request: StoredVerificationRequest): RequestStatus {
  switch (request.phase) {
    case 'ready':
    case 'waiting':
      return 'pending';
    case 'leased':
      return 'processing';
    case 'dead':
      return 'failed';
    case 'done':
      return request.outcome === 'rejected' ? 'rejected' : 'completed';
  }
}

function lastErrorOf(request: StoredVerificationRequest) {
  const last = request.errors.at(-1);
  return last === undefined
    ? null
    : { code: last.code, message: last.message, attempt: last.attempt, at: last.at };
}

export function jobView(job: VerificationJob) {
  const { _id, epoch: _epoch, generation: _generation, timeline, ...shown } = job;
  return {
    id: _id.toHexString(),
    ...shown,
    timeline: timeline.map(({ stage, at, actor, reason, txHash }) => ({ stage, at, actor, reason, txHash })),
  };
}

export type JobView = ReturnType<typeof jobView>;
