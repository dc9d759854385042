import type { Clock } from '../platform/clock';
import { TransientError } from '../platform/errors';
import type { DeadLetterSubject } from '../queue/dead-letter.model';
import type { PayloadPatch } from '../queue/worker-queue';
import type { Evidence, TransactionHash, TransactionSubmitter } from '../stellar/submission';
import { attestedFields } from './attested-fields';
import { mintSubmission } from './mint-submission';
import { certificateIdOf, type Provenance } from './provenance';
import { stageOf, verificationJobLifecycle, type VerificationJobState } from './verification-job.lifecycle';
import type { VerificationJob } from './verification-job.model';
import type { JobFields, VerificationJobs } from './verification-jobs.repository';
import type { StoredVerificationRequest, VerificationRequest } from './verification-request.model';

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
  clock: Clock;
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
 * Far beyond any transaction's validity and any clock's error: what is not decided by then, no node remembers. The contract's
 * own word has to do, or the dead letter would wait for ever for somebody to tell.
 */
const UNDECIDED_FOR_MS = 24 * 3_600_000;

/**
 * Workers can die so often that a request is given up when it has its end already, or with its mint on the way. Neither the
 * request nor its job may say "failed" over a certificate that lands, and an answer "no" is no dead letter. So the
 * transaction is waited for first, and what the chain says is told by the job. May be repeated.
 * @returns what the request is to be completed with; null when it has come to nothing
 * @throws TransientError MINT_UNDECIDED while nobody can tell.
 */
export async function findEndOfDead(
  request: StoredVerificationRequest,
  deps: DeadRequestDeps,
): Promise<PayloadPatch<VerificationRequest> | null> {
  const { rejection } = request;
  if (rejection !== null) {
    await bring(request, 'failed', { errorCode: rejection.code, errorMessage: rejection.message }, deps.jobs);
    return { outcome: 'rejected' };
  }
  const job = await deps.jobs.ensure(request);
  if (job.status === 'failed') return null;
  const minted = job.status === 'completed' ? mintOf(job) : await findMint(request, deps);
  if (minted === null) return null;
  // A job that was made for a replay may not have come to any of the states yet that lie between.
  await bring(request, 'processing', {}, deps.jobs);
  await bring(request, 'tee_verifying', attestedFields(request), deps.jobs);
  await bring(request, 'minting', { stellarTransactionHash: minted.transactionHash }, deps.jobs);
  await bring(request, 'completed', { certificateId: minted.certificateId }, deps.jobs);
  return { outcome: 'minted', ...minted };
}

/**
 * Fails the job of a dead request with the reason. May be repeated. A job that has failed stays as it is, and so does one
 * that a later claim has: then the request has been replayed meanwhile.
 * @throws TransientError JOB_COMPLETED when its certificate was told of at this very moment: then the request isn't dead.
 */
export async function failJobOfDead(
  request: StoredVerificationRequest,
  { jobs }: Pick<DeadRequestDeps, 'jobs'>,
): Promise<void> {
  const last = request.errors.at(-1);
  const errorMessage = last === undefined || last.message === '' ? 'the request was given up' : last.message;
  await bring(request, 'failed', { errorCode: last?.code ?? 'UNKNOWN', errorMessage }, jobs);
  if ((await jobs.ensure(request)).status === 'completed')
    throw new TransientError('JOB_COMPLETED', 'the certificate of a request that was given up has come');
}

/** What a completed job shows. */
function mintOf({ certificateId, stellarTransactionHash }: VerificationJob): Minted | null {
  return certificateId === undefined || stellarTransactionHash === undefined
    ? null
    : { certificateId, transactionHash: stellarTransactionHash as TransactionHash };
}

async function findMint(
  request: StoredVerificationRequest,
  { submitter, provenance, clock }: DeadRequestDeps,
): Promise<Minted | null> {
  const { transactionHash } = request;
  if (transactionHash === null) return null;
  const submission = mintSubmission(request, request.epoch, provenance);
  const signal = AbortSignal.timeout(2 * LOOK_TIMEOUT_MS);
  const outcome = await submitter.confirm(submission, { timeoutMs: LOOK_TIMEOUT_MS, signal });
  switch (outcome.kind) {
    case 'success':
      return { certificateId: certificateIdOf(outcome.returnValue), transactionHash: outcome.hash };
    case 'already_done':
      return shownBy(outcome.evidence, transactionHash);
    case 'unknown':
      if (clock.now() - (request.finishedAt ?? request.enqueuedAt).getTime() > UNDECIDED_FOR_MS)
        return shownBy(await submission.findEvidence(signal), transactionHash);
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

function shownBy(evidence: Evidence | null, transactionHash: TransactionHash): Minted | null {
  if (evidence?.ours !== true) return null;
  return {
    certificateId: certificateIdOf(evidence.returnValue),
    transactionHash: evidence.transactionHash ?? transactionHash,
  };
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
