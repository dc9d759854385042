import type { MongoWorkerQueue } from '../../queue/mongo-worker-queue';
import type { IpfsGateway } from '../spv/ipfs-gateway';
import { parseManifest } from '../spv/manifest';
import type { VerificationJob } from '../verification-job.model';
import type { VerificationJobs } from '../verification-jobs.repository';
import type { VerificationRequest } from '../verification-request.model';

export interface VerifyManifestDeps {
  queue: MongoWorkerQueue<VerificationRequest>;
  jobs: VerificationJobs;
  gateway: IpfsGateway;
  maxManifestBytes: number;
}

export type ManifestVerification =
  | { kind: 'matches' }
  /** The job has failed with it. */
  | { kind: 'mismatched'; expected: string; actual: string | null }
  /** A worker has the request, and looks at the manifest itself. */
  | { kind: 'held' }
  /** No such job, none that waits, or none that knows what its manifest should hash to. */
  | { kind: 'not_applicable' };

const WAITING: readonly VerificationJob['status'][] = ['pending', 'processing'];

/**
 * Fetches a waiting job's manifest anew, and fails the job if its canonical hash isn't the stored one.
 *
 * It runs beside the workers and never touches what one of them holds: it moves the job only from the state and epoch
 * under which it saw nobody hold the request. A worker that claims the request in between either comes first (its epoch is
 * higher, and the move is refused), or finds the job failed before it has sent anything, and ends the request with that.
 *
 * @throws TransientError, PermanentError (SPV_FETCH_FAILED) when the manifest can't be had.
 */
export async function verifyManifestForJob(
  deps: VerifyManifestDeps,
  jobId: string,
  signal: AbortSignal,
): Promise<ManifestVerification> {
  const { jobs, queue, gateway, maxManifestBytes } = deps;
  const job = await jobs.find(jobId);
  if (job === null || !WAITING.includes(job.status)) return { kind: 'not_applicable' };
  const expected = job.canonicalManifestHash;
  const request = await queue.find(job.requestId);
  if (request === null || expected === null) return { kind: 'not_applicable' };
  if (request.phase === 'leased') return { kind: 'held' };

  const { bytes } = await gateway.read(request.manifestCid, maxManifestBytes, signal);
  const parsed = parseManifest(bytes);
  const actual = 'canonicalManifestHash' in parsed ? parsed.canonicalManifestHash : null;
  if (actual === expected) return { kind: 'matches' };

  signal.throwIfAborted();
  const moved = await jobs.move({
    seen: job,
    to: 'failed',
    epoch: request.epoch,
    actor: 'worker',
    fields: {
      errorCode: 'MANIFEST_HASH_MISMATCH',
      errorMessage: 'the manifest is not the one whose canonical hash was stored',
    },
  });
  return moved.kind === 'moved' ? { kind: 'mismatched', expected, actual } : { kind: 'held' };
}
