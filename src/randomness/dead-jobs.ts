import type { Clock } from '../platform/clock';
import type { Logger } from '../platform/logger';
import type { Metrics } from '../platform/metrics';
import type { DeadLetterSubject } from '../queue/dead-letter.model';
import type { AuditTrail } from './audit-trail';
import { tellTransitions } from './job-state-manager';
import type { StoredRandomnessJob } from './randomness-job.model';
import type { RandomnessJobs } from './randomness-jobs.repository';
import { randomnessLifecycle, takeSteps, type TransitionStep } from './randomness-lifecycle';

export interface DeadJobsDeps {
  jobs: RandomnessJobs;
  audit: AuditTrail;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
}

/** What follows from a job's death. Everything here may be repeated. */
export class DeadJobs {
  readonly #deps: DeadJobsDeps;

  constructor(deps: DeadJobsDeps) {
    this.#deps = deps;
  }

  /** For the dead-letter projector. A job whose worker died has not been given its last state yet. */
  async onDead(job: StoredRandomnessJob): Promise<void> {
    if (!randomnessLifecycle.isTerminal(job.currentState)) await this.#settle(job);
    const last = job.errors.at(-1);
    await this.#deps.audit.append({
      event: 'abandoned',
      eventKey: `${job.requestId}:abandoned:${job.replays}`,
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

  async #settle(job: StoredRandomnessJob): Promise<void> {
    const { clock, jobs } = this.#deps;
    const at = new Date(clock.now());
    const reason = job.errors.at(-1)?.message ?? 'the worker died';
    const moved = takeSteps(job, stepsToDeath(job, reason), at, job.attempts);
    if (moved.kind !== 'moved') return;
    if (await jobs.settleDead(job, moved.record, at)) {
      tellTransitions(this.#deps, job, moved.added, { attempt: job.attempts, maxAttempts: job.maxAttempts });
    }
  }
}

/** `queued` has one way out without work, `failed`; everywhere else the retries are what was used up. */
function stepsToDeath(job: StoredRandomnessJob, reason: string): TransitionStep[] {
  if (job.currentState === 'queued') return [{ toState: 'failed', reason, error: reason }];
  return [
    { toState: 'retrying', reason, error: reason },
    { toState: 'dead-lettered', reason: `Exhausted all ${job.maxAttempts} attempts` },
  ];
}
