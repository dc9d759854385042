import type { Failure } from '../platform/errors';
import type { Logger } from '../platform/logger';
import type { ClaimedJob, Lease, PayloadPatch, WorkerQueue } from '../queue/worker-queue';
import type { TransactionHash } from '../stellar/submission';
import type { JobContext, JobOutcome } from '../worker/job-handler';
import type { Rejection } from './spv/verdict';
import { stageOf, verificationJobLifecycle, type VerificationJobState } from './verification-job.lifecycle';
import type { VerificationJob } from './verification-job.model';
import type { JobFields, VerificationJobs } from './verification-jobs.repository';
import { verificationJobId } from './verification-job-id';
import type { StoredVerificationRequest, VerificationRequest } from './verification-request.model';

/** Whether the pipeline goes on to its next step, or this try is over. */
export type StepResult = { kind: 'next' } | { kind: 'stop'; outcome: JobOutcome<VerificationRequest> };

export const next: StepResult = { kind: 'next' };
const stop = (outcome: JobOutcome<VerificationRequest>): StepResult => ({ kind: 'stop', outcome });
export const leaseLost: StepResult = stop({ kind: 'lease_lost' });

/**
 * One try at one request: what is known of it, and the only two ways in which a step may write.
 *
 * The order is always the same: a fact goes onto the request first, under the lease; then the job is moved to show it.
 * So a holder that loses its lease in between has moved nothing that its successor wouldn't, and a successor that finds
 * a fact on the request never works it out again.
 */
export class VerificationRun {
  readonly lease: Lease;
  readonly signal: AbortSignal;
  readonly logger: Logger;
  readonly #queue: WorkerQueue<VerificationRequest>;
  readonly #jobs: VerificationJobs;
  #request: StoredVerificationRequest;
  #job: VerificationJob | null = null;

  constructor(
    claimed: ClaimedJob<VerificationRequest>,
    context: JobContext,
    stores: { queue: WorkerQueue<VerificationRequest>; jobs: VerificationJobs },
  ) {
    this.lease = claimed.lease;
    this.signal = context.signal;
    this.logger = context.logger;
    this.#request = claimed.job;
    this.#queue = stores.queue;
    this.#jobs = stores.jobs;
  }

  get request(): StoredVerificationRequest {
    return this.#request;
  }

  /** Loads the job of this request, or creates it where its creator died before it came to that. */
  async open(): Promise<StepResult> {
    const jobId = verificationJobId(this.#request.key, this.#request.replays);
    if (!jobId.equals(this.#request.verificationJobId)) {
      // Replayed out of the dead letters: the job of before stays failed, and this try works for a new one.
      const recorded = await this.record({ verificationJobId: jobId });
      if (recorded.kind === 'stop') return recorded;
    }
    const job = await this.#jobs.ensure(this.#request);
    this.#job = job;
    if (verificationJobLifecycle.isTerminal(job.status)) return this.#settle(job);
    // A job that has got anywhere was in other hands before.
    const resumed = job.status !== 'pending';
    return !resumed || (await this.#jobs.adopt(job._id, this.lease.epoch)) ? next : leaseLost;
  }

  /** Stores a step's product on the request. */
  async record(patch: PayloadPatch<VerificationRequest>): Promise<StepResult> {
    this.signal.throwIfAborted();
    const written = await this.#queue.record(this.lease, patch);
    if (written.kind === 'lease_lost') return leaseLost;
    this.#request = { ...this.#request, ...patch };
    return next;
  }

  /** Moves the job to `state`, unless an earlier try has brought it there or further. */
  async reach(state: VerificationJobState, fields: JobFields): Promise<StepResult> {
    let job = this.#openJob();
    for (;;) {
      this.signal.throwIfAborted();
      if (verificationJobLifecycle.isTerminal(job.status)) return this.#settle(job);
      if (stageOf(job.status) >= stageOf(state)) return next;
      const moved = await this.#jobs.move({
        seen: job,
        to: state,
        epoch: this.lease.epoch,
        actor: 'worker',
        fields,
      });
      if (moved.kind === 'superseded') return leaseLost;
      // Moved by us, or meanwhile by someone else (the mint's event, the manifest check): judge it anew.
      job = moved.job;
      this.#job = job;
    }
  }

  /** Tells the job which transaction carries the mint now. */
  async showMint(transactionHash: string): Promise<StepResult> {
    const minting = await this.reach('minting', { stellarTransactionHash: transactionHash });
    const job = this.#openJob();
    if (minting.kind === 'stop' || job.stellarTransactionHash === transactionHash) return minting;
    const shown = await this.#jobs.showMint(job, this.lease.epoch, transactionHash);
    if (shown.kind === 'superseded') return leaseLost;
    this.#job = shown.job;
    return verificationJobLifecycle.isTerminal(shown.job.status) ? this.#settle(shown.job) : next;
  }

  /** Ends the request with the answer "no". That is no failure of the work, so no dead letter comes of it. */
  async reject(rejection: Rejection): Promise<StepResult> {
    const recorded = this.#request.rejection === null ? await this.record({ rejection }) : next;
    if (recorded.kind === 'stop') return recorded;
    return this.reach('failed', { errorCode: rejection.code, errorMessage: rejection.message });
  }

  /** Ends the request with its certificate. `transactionHash` is the one that landed; a fee bump has another than was sent. */
  async complete(certificateId: string, transactionHash: string, ledger?: number): Promise<StepResult> {
    const shown = await this.showMint(transactionHash);
    if (shown.kind === 'stop') return shown;
    const completed = await this.reach('completed', { certificateId });
    if (completed.kind === 'next' || completed.outcome.kind !== 'completed' || ledger === undefined)
      return completed;
    return stop({ ...completed.outcome, ledger });
  }

  retry(failure: Failure): StepResult {
    return stop({ kind: 'retry', failure });
  }

  dead(failure: Failure): StepResult {
    return stop({ kind: 'dead', failure });
  }

  postpone(delayMs: number, reason: string): StepResult {
    return stop({ kind: 'postponed', delayMs, reason });
  }

  /** The job has its end: the request gets the same. */
  #settle(job: VerificationJob): StepResult {
    if (job.status === 'completed') {
      return stop({
        kind: 'completed',
        patch: {
          outcome: 'minted',
          certificateId: job.certificateId ?? null,
          transactionHash: (job.stellarTransactionHash ?? null) as TransactionHash | null,
        },
      });
    }
    const rejection = this.#request.rejection ?? {
      code: job.errorCode ?? 'JOB_ALREADY_FAILED',
      message: job.errorMessage ?? 'the job had failed already',
    };
    return stop({ kind: 'completed', patch: { outcome: 'rejected', rejection } });
  }

  #openJob(): VerificationJob {
    if (this.#job === null) throw new TypeError('the run was not opened');
    return this.#job;
  }
}
