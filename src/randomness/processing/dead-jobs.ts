import type { Clock } from '../../platform/clock';
import { isDatabaseUnreachable } from '../../platform/database/faults';
import { PermanentError, TransientError } from '../../platform/errors';
import type { Logger } from '../../platform/logger';
import type { Metrics } from '../../platform/metrics';
import type { DeadLetterSubject } from '../../queue/dead-letter.model';
import type { PayloadPatch } from '../../queue/worker-queue';
import {
  NOTHING_PREPARED,
  type SubmissionOutcome,
  type TransactionSubmitter,
} from '../../stellar/submission';
import type { AuditTrail } from '../audit/audit-trail';
import { type DeliveryRequests, madeBy } from './delivery-requests';
import type { Delivery, Endings } from './job-endings';
import { tellTransitions } from '../jobs/job-state-manager';
import type { RandomnessJob, StoredRandomnessJob } from '../jobs/randomness-job.model';
import type { RandomnessJobs } from '../jobs/randomness-jobs.repository';
import {
  randomnessLifecycle,
  spentStep,
  stepsToConfirmed,
  stepsToFailed,
  takeSteps,
  type TransitionStep,
} from '../jobs/randomness-lifecycle';
import { judgeSla, tellBreach, tellLatency } from '../jobs/sla';

export interface DeadJobsDeps {
  jobs: RandomnessJobs;
  requests: DeliveryRequests;
  submitter: TransactionSubmitter;
  endings: Endings;
  audit: AuditTrail;
  highPrioritySlaMs: number;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
}

/** A transaction that isn't decided by then is asked about again with the next pass. */
const LOOK_TIMEOUT_MS = 2_000;
/** Far beyond any transaction's validity: a dead letter must not wait for ever for somebody to tell. */
const UNDECIDED_FOR_MS = 24 * 3_600_000;

/** The post-mortem of jobs, for the dead-letter projector. Everything here may be repeated. */
export class DeadJobs {
  readonly #deps: DeadJobsDeps;

  constructor(deps: DeadJobsDeps) {
    this.#deps = deps;
  }

  /**
   * A job can die with its delivery on the way: its worker did on the last attempt, or an operator gave it up. Then the
   * chain is waited for first.
   * @returns what the job is to be completed with; null where nothing of it landed
   * @throws TransientError while nobody can tell.
   */
  async findFinished(job: StoredRandomnessJob): Promise<PayloadPatch<RandomnessJob> | null> {
    if (job.txHash === null || job.randomness === null) return null;
    if (randomnessLifecycle.isTerminal(job.currentState)) return null;
    const delivery = await this.#deliveryUnlessTooLong(job);
    if (delivery === null) return null;
    const { clock, endings, highPrioritySlaMs } = this.#deps;
    await endings.auditReveal(job, delivery);
    const at = new Date(clock.now());
    const steps = stepsToConfirmed(job.currentState, delivery.txHash);
    const moved = takeSteps(job, steps, at, job.attempts);
    if (moved.kind !== 'moved') return null;
    const sla = judgeSla(job, at.getTime(), highPrioritySlaMs);
    this.#tell(job, moved.added);
    tellLatency(this.#deps, job, sla);
    tellBreach(this.#deps, job, sla);
    return {
      ...moved.record,
      ...delivery,
      confirmedAt: at,
      slaBreached: sla.breached || job.slaBreached,
      updatedAt: at,
    };
  }

  /** Gives a job its last state where it has none yet, and tells of its end. */
  async onDead(job: StoredRandomnessJob): Promise<void> {
    const { audit, clock, highPrioritySlaMs, jobs } = this.#deps;
    const at = new Date(clock.now());
    const last = job.errors.at(-1);
    const sla = judgeSla(job, at.getTime(), highPrioritySlaMs);
    const ended = takeSteps(job, stepsToDeath(job), at, job.attempts);
    const slaBreached = sla.breached || job.slaBreached;
    if (ended.kind === 'moved' || slaBreached !== job.slaBreached) {
      const record = ended.kind === 'moved' ? ended.record : {};
      if (await jobs.settleDead(job, { ...record, slaBreached }, at)) {
        if (ended.kind === 'moved') this.#tell(job, ended.added);
        tellBreach(this.#deps, job, sla);
      }
    }
    await audit.append({
      event: 'abandoned',
      eventKey: `${job.key}:abandoned:${job.epoch}`,
      requestId: job.requestId,
      raffleId: job.raffleId,
      data: {
        code: last?.code ?? 'UNKNOWN',
        reason: last?.message ?? '',
        attempts: job.attempts,
        contractId: job.contractId,
      },
    });
  }

  describe(job: StoredRandomnessJob): DeadLetterSubject {
    return {
      eventId: job.requestId,
      details: {
        raffleId: job.raffleId,
        contractId: job.contractId,
        prizeXlm: job.prizeXlm,
        priorityLevel: job.priorityLevel,
        transactionHash: job.txHash,
        ...(job.requestedAtLedger === null ? {} : { requestedAtLedger: job.requestedAtLedger }),
      },
    };
  }

  /** Whatever keeps it from being found out, by then no node would know any more. */
  async #deliveryUnlessTooLong(job: StoredRandomnessJob): Promise<Delivery | null> {
    try {
      return await this.#deliveryOf(job);
    } catch (error) {
      const deadForMs = this.#deps.clock.now() - (job.finishedAt ?? job.enqueuedAt).getTime();
      if (deadForMs <= UNDECIDED_FOR_MS || isDatabaseUnreachable(error)) throw error;
      this.#deps.logger.error(
        { err: error, requestId: job.requestId, txHash: job.txHash },
        'how the delivery of a dead job ended can’t be found out; it counts as failed',
      );
      return null;
    }
  }

  async #deliveryOf(job: StoredRandomnessJob): Promise<Delivery | null> {
    const randomness = madeBy(job);
    const outcome = await this.#look(job);
    switch (outcome?.kind) {
      case 'success':
        return { randomness, txHash: outcome.hash, ledger: outcome.ledger };
      case 'already_done': {
        const { ours, transactionHash = job.txHash, ledger = null } = outcome.evidence;
        return ours ? { randomness, txHash: transactionHash, ledger } : null;
      }
      case 'unknown':
        throw new TransientError(
          'DELIVERY_UNDECIDED',
          'the delivery of a job that was given up is still on its way',
        );
      default:
        return null;
    }
  }

  async #look(job: StoredRandomnessJob): Promise<SubmissionOutcome | null> {
    const { requests, submitter } = this.#deps;
    const signal = AbortSignal.timeout(2 * LOOK_TIMEOUT_MS);
    try {
      const request = await requests.of(job, job.epoch, signal);
      return await submitter.confirm(request, { timeoutMs: LOOK_TIMEOUT_MS, signal });
    } catch (error) {
      if (error instanceof PermanentError && error.code === NOTHING_PREPARED) return null;
      throw error;
    }
  }

  #tell(job: StoredRandomnessJob, added: Parameters<typeof tellTransitions>[2]): void {
    tellTransitions(this.#deps, job, added, { attempt: job.attempts, maxAttempts: job.maxAttempts });
  }
}

/**
 * `queued` has one way out without work, `failed`; so has whatever no retry would mend. Everywhere else the retries are what
 * was used up. None for a job that has its last state.
 */
function stepsToDeath(job: StoredRandomnessJob): TransitionStep[] {
  if (randomnessLifecycle.isTerminal(job.currentState)) return [];
  const last = job.errors.at(-1);
  const reason = last?.message ?? 'the worker died';
  if (job.currentState === 'queued' || last?.retryable === false)
    return stepsToFailed(job.currentState, reason);
  return [{ toState: 'retrying', reason, error: reason }, spentStep(job.maxAttempts)];
}
