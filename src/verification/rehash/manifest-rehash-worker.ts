import { sleep } from '../../platform/clock';
import type { Logger } from '../../platform/logger';
import type { MongoWorkerQueue } from '../../queue/mongo-worker-queue';
import type { VerificationJobs } from '../verification-jobs.repository';
import type { ManifestCheck } from './manifest-check.model';

export interface ManifestRehashWorkerOptions {
  jobs: VerificationJobs;
  checks: MongoWorkerQueue<ManifestCheck>;
  /** Pause between two scans. A job is looked at once it has waited so long. */
  intervalMs: number;
  /** Most jobs put up by one scan. */
  batchSize: number;
  logger: Logger;
}

/**
 * Puts up the manifests of waiting jobs to be re-hashed, one check for a job however many processes scan. The checks
 * themselves are claimed and done by the lanes of any worker, as all work is.
 * @returns a function that stops it, once the scan under way is over.
 */
export function startManifestRehashWorker(options: ManifestRehashWorkerOptions): () => Promise<void> {
  const stopping = new AbortController();
  const running = scanUntil(stopping.signal, options);
  return async () => {
    stopping.abort();
    await running;
  };
}

async function scanUntil(signal: AbortSignal, options: ManifestRehashWorkerOptions): Promise<void> {
  let after: string | undefined;
  while (!signal.aborted) {
    try {
      after = await scanForManifests(options, after);
    } catch (error) {
      options.logger.warn({ err: error }, 'scan for manifests failed; next one as usual');
    }
    await sleep(options.intervalMs, signal);
  }
}

/** One page of the waiting jobs. @returns where the next scan goes on; undefined: from the start. */
export async function scanForManifests(
  { jobs, checks, intervalMs, batchSize }: ManifestRehashWorkerOptions,
  after?: string,
): Promise<string | undefined> {
  const waiting = await jobs.waitingWithManifestHash({ minAgeMs: intervalMs, limit: batchSize, after });
  await checks.enqueueMany(
    waiting.map(({ _id }) => ({
      key: `manifest:${_id.toHexString()}`,
      payload: { verificationJobId: _id, result: null },
    })),
  );
  return waiting.length < batchSize ? undefined : waiting.at(-1)?._id.toHexString();
}
