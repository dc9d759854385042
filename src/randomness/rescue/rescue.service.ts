import type { Logger } from '../../platform/logger';
import type { JobHandler } from '../../worker/job-handler';
import type { SoloRunner } from '../../worker/solo-runner';
import type { Endings } from '../processing/job-endings';
import type { RandomnessDeadLetters } from '../jobs/randomness-dead-letters';
import type { RandomnessJob, StoredRandomnessJob } from '../jobs/randomness-job.model';
import type { RandomnessJobs } from '../jobs/randomness-jobs.repository';
import { randomnessLifecycle } from '../jobs/randomness-lifecycle';
import type { DeadLetterDiscard } from './dead-letter-discard';
import type { ForceSubmitPlan, ForceSubmitPreview } from './force-submit-preview';
import type { ForceSubmitRequest, ForceSubmitTargets } from './force-submit-target';
import { type JobPlan, jobPlan } from './job-plan';
import type { LookAtRaffle, RaffleLook } from './raffle-look';
import type { Operator, RescueAction, RescueLog, RescueResult } from './rescue-log';
import { type JobAction, heldBy, refusalIfUndecided, refusalOf } from './rescue-rules';

export interface RescueServiceDeps {
  jobs: RandomnessJobs;
  endings: Endings;
  deadLetters: RandomnessDeadLetters;
  discards: DeadLetterDiscard;
  runner: SoloRunner<RandomnessJob>;
  handler: JobHandler<RandomnessJob>;
  targets: ForceSubmitTargets;
  previews: ForceSubmitPreview;
  look: LookAtRaffle;
  log: RescueLog;
  latestLedger: (signal: AbortSignal) => Promise<number>;
  /** Ledgers after its request from which nothing is sent any more; 0 for no limit. */
  requestTimeoutLedgers: number;
  logger: Logger;
}

const LEDGER_TIMEOUT_MS = 15_000;

/** Jobs are shown to everyone; who it was and why stands in the audit trail. */
const GIVEN_UP = 'given up by an operator';

/**
 * What an operator may do to a job. Each goes through the job's own lease or a guarded transition, so that a rescue and the
 * queue can't both deliver, and each is written to the audit trail before it is begun and whatever it came to.
 */
export class RescueService {
  readonly #deps: RescueServiceDeps;

  constructor(deps: RescueServiceDeps) {
    this.#deps = deps;
  }

  /** By request id, or by the id of the queue's document. */
  find(id: string): Promise<StoredRandomnessJob | null> {
    return this.#deps.jobs.findByAnyId(id);
  }

  /** Null where there is no such job. */
  async plan(action: JobAction, id: string): Promise<JobPlan | null> {
    const job = await this.find(id);
    if (job === null) return null;
    const look = await this.#deps.look(job);
    return jobPlan(job, look, await this.#refusal(action, job, look));
  }

  async planForceSubmit(request: ForceSubmitRequest): Promise<ForceSubmitPlan> {
    return this.#deps.previews.plan(await this.#deps.targets.find(request));
  }

  /** Sends a dead job back to work, with fresh attempts and its old priority. */
  reEnqueue(id: string, operator: Operator): Promise<RescueResult> {
    return this.#logged('re_enqueue', id, operator, async (found) => {
      const job = await this.#afterPostMortem(found);
      if (job === null) return notFound(id);
      const refusal = await this.#refusal('re_enqueue', job);
      if (refusal !== null) return { kind: 'refused', message: refusal };
      const replayed = await this.#deps.deadLetters.replay(
        job._id.toHexString(),
        {},
        'Re-enqueued by an operator',
      );
      if (replayed.kind === 'not_found') return notFound(id);
      if (replayed.kind === 'not_dead')
        return { kind: 'refused', message: `the job is ${replayed.job.currentState}: another was faster` };
      return { kind: 'done', message: 'the job is queued again', details: { replays: replayed.job.replays } };
    });
  }

  /** Delivers now, from this process, under the job's lease. Makes the job where there is none. */
  async forceSubmit(
    request: ForceSubmitRequest,
    operator: Operator,
    signal?: AbortSignal,
  ): Promise<RescueResult> {
    const { targets } = this.#deps;
    const target = await targets.find(request);
    const { asked, requestId, known } = target;
    const subject = {
      requestId,
      raffleId: known?.raffleId ?? asked.raffleId,
      jobId: known?._id.toHexString() ?? null,
    };
    return this.#deps.log.run('force_submit', subject, operator, async () => {
      const current = { ...target, known: await this.#afterPostMortem(known) };
      const { refusal } = await targets.judge(current);
      if (refusal !== null) return { kind: 'refused', message: refusal };
      const job = await targets.ensureJob(current);
      const jobId = job._id.toHexString();
      if (job.phase === 'dead') {
        await this.#deps.deadLetters.replay(jobId, {}, 'Forced by an operator');
      }
      const seen: { postponed: string | null } = { postponed: null };
      const run = await this.#deps.runner.run(jobId, this.#urgently(seen), signal);
      if (run.kind === 'not_available') return { jobId, ...(await this.#notAvailable(jobId)) };
      const after = await this.find(jobId);
      const { currentState = 'unknown', txHash = null, ledger = null, lastError = null } = after ?? {};
      return currentState === 'confirmed'
        ? {
            kind: 'done',
            message: 'the randomness is on chain',
            jobId,
            details: { state: currentState, txHash, ledger },
          }
        : {
            kind: 'refused',
            message: notDelivered(currentState, seen.postponed ?? lastError),
            jobId,
          };
    });
  }

  /**
   * Gives up a job that waits. One that a worker holds is left to it. Of one whose transaction may still land, the
   * post-mortem waits for how that ends.
   */
  forceFail(id: string, operator: Operator): Promise<RescueResult> {
    return this.#logged('force_fail', id, operator, async (job) => {
      if (job === null) return notFound(id);
      if (randomnessLifecycle.isTerminal(job.currentState)) {
        return { kind: 'refused', message: `the job is ${job.currentState} already` };
      }
      const jobId = job._id.toHexString();
      const run = await this.#deps.runner.run(jobId, (claimed) =>
        Promise.resolve(
          this.#deps.endings.giveUp({ lease: claimed.lease, job: claimed.job }, 'FORCE_FAILED', GIVEN_UP),
        ),
      );
      if (run.kind === 'not_available') return this.#notAvailable(jobId);
      if (run.ending !== 'dead_lettered') {
        return {
          kind: 'refused',
          message: 'the lease was lost while the job was being given up: look again',
        };
      }
      const state = (await this.find(jobId))?.currentState ?? 'failed';
      return {
        kind: 'done',
        message: !randomnessLifecycle.isTerminal(state)
          ? `the job is given up; its transaction ${String(job.txHash)} may still land: then it ends as confirmed, else as failed`
          : `the job is ${state}`,
        details: { state },
      };
    });
  }

  /** Whatever the job's own priority, an operator who forces it gets the slot, the account and the fee of an urgent one. */
  #urgently(seen: { postponed: string | null }): JobHandler<RandomnessJob> {
    const { handler } = this.#deps;
    return async ({ lease, job }, context) => {
      const forced = { ...job, urgent: true };
      const outcome = await handler({ lease, job: forced }, context);
      if (outcome.kind === 'postponed') seen.postponed = outcome.reason;
      return outcome;
    };
  }

  /** Clears a dead letter whose raffle needs nothing any more: its record is closed and the job is gone. */
  discard(id: string, operator: Operator): Promise<RescueResult> {
    return this.#logged('discard', id, operator, async (found) => {
      const job = await this.#afterPostMortem(found);
      if (job === null) return notFound(id);
      const refusal = await this.#refusal('discard', job);
      if (refusal !== null) return { kind: 'refused', message: refusal };
      if (!(await this.#deps.discards.discard(job)))
        return { kind: 'refused', message: 'the job is not what it was a moment ago: look again' };
      const { currentState: state, attemptCount, replays, epoch, lastError } = job;
      return {
        kind: 'done',
        message: 'the dead letter is closed and the job is gone',
        details: { state, attemptCount, replays, epoch, lastError },
      };
    });
  }

  /** What a job died of is found out and put on record first, where that is still to be done and can be. */
  async #afterPostMortem(job: StoredRandomnessJob | null): Promise<StoredRandomnessJob | null> {
    if (job?.phase !== 'dead' || !job.deadLetterPending) return job;
    const jobId = job._id.toHexString();
    await this.#deps.deadLetters.projectOne(jobId);
    return this.#deps.jobs.findById(jobId);
  }

  async #refusal(action: JobAction, job: StoredRandomnessJob, seen?: RaffleLook): Promise<string | null> {
    const look = seen ?? (await this.#deps.look(job));
    const isTooLate = action === 'discard' && (await this.#isTooLate(job));
    return refusalOf(action, job, { look, isTooLate });
  }

  async #isTooLate({ requestedAtLedger }: StoredRandomnessJob): Promise<boolean> {
    const { latestLedger, requestTimeoutLedgers } = this.#deps;
    if (requestedAtLedger === null || requestTimeoutLedgers === 0) return false;
    const ledger = await latestLedger(AbortSignal.timeout(LEDGER_TIMEOUT_MS)).catch(() => null);
    return ledger !== null && ledger >= requestedAtLedger + requestTimeoutLedgers;
  }

  async #notAvailable(id: string): Promise<Extract<RescueResult, { kind: 'refused' }>> {
    const job = await this.find(id);
    if (job !== null && randomnessLifecycle.isTerminal(job.currentState))
      return { kind: 'refused', message: `the job is ${job.currentState} already` };
    const undecided = job === null ? null : refusalIfUndecided(job);
    return { kind: 'refused', message: undecided ?? heldBy(job) };
  }

  async #logged(
    action: RescueAction,
    id: string,
    operator: Operator,
    act: (job: StoredRandomnessJob | null) => Promise<RescueResult>,
  ): Promise<RescueResult> {
    const job = await this.find(id);
    const subject = {
      requestId: job?.requestId ?? id,
      raffleId: job?.raffleId ?? null,
      jobId: job?._id.toHexString() ?? null,
    };
    return this.#deps.log.run(action, subject, operator, () => act(job));
  }
}

const notFound = (id: string): RescueResult => ({ kind: 'not_found', message: `there is no job ${id}` });

const notDelivered = (state: string, why: string | null): string =>
  `not delivered: the job is ${state}${why === null ? '' : ` (${why})`}`;
