import { PermanentError, TransientError } from '../../platform/errors';
import type { JobHandler } from '../../worker/job-handler';
import type { ManifestCheck } from './manifest-check.model';
import { verifyManifestForJob, type VerifyManifestDeps } from './verify-manifest';

/** When to look again at a job whose request a worker has; by then it usually has settled it. */
const HELD_RECHECK_MS = 30_000;

/**
 * A manifest that can't be had ends its check without a verdict, and without a dead letter: the request itself will meet
 * the same trouble, and that is where somebody can do something about it.
 */
export function manifestCheckHandler(deps: VerifyManifestDeps): JobHandler<ManifestCheck> {
  return async ({ job, lease }, { signal, logger }) => {
    const jobId = job.verificationJobId.toHexString();
    try {
      const verification = await verifyManifestForJob(deps, jobId, signal);
      if (verification.kind === 'held') {
        return { kind: 'postponed', delayMs: HELD_RECHECK_MS, reason: 'a worker has the request' };
      }
      if (verification.kind === 'mismatched') {
        logger.warn({ verificationJobId: jobId, ...verification }, 'manifest changed: job failed');
      }
      return { kind: 'completed', patch: { result: verification.kind } };
    } catch (error) {
      signal.throwIfAborted();
      const givenUp =
        error instanceof PermanentError ||
        (error instanceof TransientError && lease.attempt >= lease.maxAttempts);
      if (!givenUp) throw error;
      return { kind: 'completed', patch: { result: 'unreachable' } };
    }
  };
}
