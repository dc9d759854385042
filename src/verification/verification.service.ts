import { randomUUID } from 'node:crypto';
import type { MongoWorkerQueue } from '../queue/mongo-worker-queue';
import { verificationJobId } from './verification-job-id';
import type { VerificationJobState } from './verification-job.lifecycle';
import type { VerificationJobs } from './verification-jobs.repository';
import { newVerificationRequest, type VerificationRequest } from './verification-request.model';
import { type JobView, jobView, type RequestView, requestView } from './views';

export interface Submission {
  manifestCid: string;
  mediaCid: string;
  requester: string;
  canonicalManifestHash?: string;
}

export interface Submitted {
  requestId: string;
  jobId: string;
  status: VerificationJobState;
  /** The request had been made before under the same key; this is the first one. */
  alreadyThere: boolean;
}

export interface JobPage {
  jobs: JobView[];
  /** Key of the next page; null on the last. */
  next: string | null;
}

export interface VerificationServiceDeps {
  queue: MongoWorkerQueue<VerificationRequest>;
  jobs: VerificationJobs;
}

export class VerificationService {
  readonly #deps: VerificationServiceDeps;

  constructor(deps: VerificationServiceDeps) {
    this.#deps = deps;
  }

  /**
   * Enqueues a request once for one `eventId`: later calls get the first, whatever else they ask for. The request is
   * the truth; its job follows from it, so a crash between the two writes is mended by whoever comes next.
   */
  async submit(submission: Submission, eventId: string): Promise<Submitted> {
    const { kind, job: request } = await this.#deps.queue.enqueue({
      key: eventId,
      payload: newVerificationRequest({
        eventId,
        manifestCid: submission.manifestCid,
        mediaCid: submission.mediaCid,
        requester: submission.requester,
        expectedCanonicalManifestHash: submission.canonicalManifestHash ?? null,
        verificationJobId: verificationJobId(eventId, 0),
      }),
    });
    const job = await this.#deps.jobs.ensure(request);
    return {
      requestId: request._id.toHexString(),
      jobId: job._id.toHexString(),
      status: job.status,
      alreadyThere: kind === 'already_there',
    };
  }

  /** A request of the API. Without an idempotency key it is a new one each time. */
  submitByKey(submission: Submission, idempotencyKey: string | undefined): Promise<Submitted> {
    return this.submit(submission, `api:${idempotencyKey ?? randomUUID()}`);
  }

  async findRequest(id: string): Promise<RequestView | null> {
    const request = await this.#deps.queue.find(id);
    return request === null ? null : requestView(request);
  }

  async findJob(id: string): Promise<JobView | null> {
    const job = await this.#deps.jobs.find(id);
    return job === null ? null : jobView(job);
  }

  async listJobs(ownerPublicKey: string, limit: number, after: string | undefined): Promise<JobPage> {
    const { jobs, next } = await this.#deps.jobs.pageOfOwner(ownerPublicKey, limit, after);
    return { jobs: jobs.map(jobView), next };
  }
}
