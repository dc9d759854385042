import { TransientError } from '../platform/errors';
import type { DeadLetterSubject } from '../queue/dead-letter.model';
import type { TransactionHash, TransactionSubmitter } from '../stellar/submission';
import { attestedFields } from './attested-fields';
import { mintSubmission } from './mint-submission';
import { certificateIdOf, type Provenance } from './provenance';
import { stageOf, verificationJobLifecycle, type VerificationJobState } from './verification-job.lifecycle';
import type { JobFields, VerificationJobs } from './verification-jobs.repository';
import type { StoredVerificationRequest } from './verification-request.model';

/** What a dead letter names of a request. */
export const describeDeadRequest = (request: StoredVerificationRequest): DeadLetterSubject => ({
  eventId: request.eventId,
  verificationJobId: request.verificationJobId.toHexString(),
  mediaCid: request.mediaCid,
  manifestCid: request.manifestCid,
  requester: request.requester,
});

export interface DeadRequestDeps {
  jobs: VerificationJobs;
  submitter: TransactionSubmitter;
  provenance: Provenance;
}

interface Minted {
  certificateId: string;
  transactionHash: TransactionHash;
}

/** A transaction that isn't decided by then is asked about again with the next pass. */
const LOOK_TIMEOUT_MS = 2000;

/**
 * Fails the job of a dead request with the reason. May be repeated. A job that has ended stays as it is, and so does one
 * that a later claim has: then the request has been replayed meanwhile.
 *
 * Workers can die so often that a request is given up while its mint is on the way. A job must not say "failed" over a
 * certificate that lands, so the transaction is waited for first, and a job whose certificate is there is completed.
 * @throws TransientError MINT_UNDECIDED while nobody can tell.
 */
export async function settleJobOfDead(
  request: StoredVerificationRequest,
  deps: DeadRequestDeps,
): Promise<void> {
  const job = await deps.jobs.ensure(request);
  if (verificationJobLifecycle.isTerminal(job.status)) return;
  const minted = await findMint(request, deps);
  if (minted !== null) {
    // A job that was made for a replay may not have come to any of the states yet that lie between.
    await bring(request, 'processing', {}, deps.jobs);
    await bring(request, 'tee_verifying', attestedFields(request), deps.jobs);
    await bring(request, 'minting', { stellarTransactionHash: minted.transactionHash }, deps.jobs);
    return bring(request, 'completed', { certificateId: minted.certificateId }, deps.jobs);
  }
  const last = request.errors.at(-1);
  const errorMessage = last === undefined || last.message === '' ? 'the request was given up' : last.message;
  return bring(request, 'failed', { errorCode: last?.code ?? 'UNKNOWN', errorMessage }, deps.jobs);
}

async function findMint(
  request: StoredVerificationRequest,
  { submitter, provenance }: DeadRequestDeps,
): Promise<Minted | null> {
  if (request.transactionHash === null) return null;
  const outcome = await submitter.confirm(mintSubmission(request, request.epoch, provenance), {
    timeoutMs: LOOK_TIMEOUT_MS,
    signal: AbortSignal.timeout(2 * LOOK_TIMEOUT_MS),
  });
  switch (outcome.kind) {
    case 'success':
      return { certificateId: certificateIdOf(outcome.returnValue), transactionHash: outcome.hash };
    case 'already_done':
      if (!outcome.evidence.ours) return null;
      return {
        certificateId: certificateIdOf(outcome.evidence.returnValue),
        transactionHash: outcome.evidence.transactionHash ?? request.transactionHash,
      };
    case 'unknown':
      throw new TransientError(
        'MINT_UNDECIDED',
        'the mint of a request that was given up is still on its way',
      );
    case 'rejected':
    case 'expired':
    case 'superseded':
      return null;
  }
}

/** Moves the job there, unless it has come as far by itself or a later claim has it. */
async function bring(
  request: StoredVerificationRequest,
  to: VerificationJobState,
  fields: JobFields,
  jobs: VerificationJobs,
): Promise<void> {
  let job = await jobs.ensure(request);
  while (!verificationJobLifecycle.isTerminal(job.status) && stageOf(job.status) < stageOf(to)) {
    const moved = await jobs.move({ seen: job, to, epoch: request.epoch, actor: 'worker', fields });
    if (moved.kind === 'superseded') return;
    job = moved.job;
  }
}
