import { createHash } from 'node:crypto';
import type { Clock } from '../../platform/clock';
import type { Failure } from '../../platform/errors';
import type { Logger } from '../../platform/logger';
import type { Metrics } from '../../platform/metrics';
import type { TransactionHash } from '../../stellar/submission';
import type { JobOutcome } from '../../worker/job-handler';
import { type AuditTrail, revealedEventKey } from '../audit/audit-trail';
import type { HeldJob, JobStateManager, PhaseProducts } from '../jobs/job-state-manager';
import type { RandomnessJob, StoredRandomness, StoredRandomnessJob } from '../jobs/randomness-job.model';
import {
  spentStep,
  stepsToConfirmed,
  stepsToFailed,
  type TransitionStep,
} from '../jobs/randomness-lifecycle';
import { judgeSla, tellBreach, tellLatency } from '../jobs/sla';

export interface EndingsDeps {
  states: JobStateManager;
  audit: AuditTrail;
  highPrioritySlaMs: number;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
}

export interface Delivery {
  randomness: StoredRandomness;
  txHash: TransactionHash | null;
  ledger: number | null;
}

type Ending = JobOutcome<RandomnessJob>;
type Postponed = Extract<Ending, { kind: 'postponed' }>;

const UNDECIDED_RECHECK_MS = 5_000;

/**
 * How a try ends: the last transitions and the audit row of each ending. The row is appended before the ending is written;
 * a crash between the two repeats the ending, and the row is not appended twice.
 */
export class Endings {
  readonly #deps: EndingsDeps;

  constructor(deps: EndingsDeps) {
    this.#deps = deps;
  }

  /** The seed is fixed from here on. Its hash is public at once, the seed itself when it is delivered. */
  async auditCommitment(job: StoredRandomnessJob, randomness: StoredRandomness): Promise<void> {
    const commitment = createHash('sha256').update(Buffer.from(randomness.seed, 'hex')).digest('hex');
    await this.#deps.audit.append({
      event: 'committed',
      eventKey: `${job.key}:committed:${commitment}`,
      requestId: job.requestId,
      raffleId: job.raffleId,
      data: {
        commitment,
        method: randomness.method,
        messageVersion: randomness.messageVersion,
        oraclePublicKey: randomness.oracleKey,
        contractId: job.contractId,
      },
    });
  }

  /** Seed and proof are public from here on. */
  async auditReveal(job: StoredRandomnessJob, { randomness, txHash, ledger }: Delivery): Promise<void> {
    await this.#deps.audit.append({
      event: 'revealed',
      eventKey: revealedEventKey(job.key),
      requestId: job.requestId,
      raffleId: job.raffleId,
      data: {
        seed: randomness.seed,
        proof: randomness.proof,
        method: randomness.method,
        messageVersion: randomness.messageVersion,
        oraclePublicKey: randomness.oracleKey,
        contractId: job.contractId,
        txHash,
        ledger,
      },
    });
  }

  async confirmed(held: HeldJob, delivery: Delivery): Promise<Ending> {
    const { clock, highPrioritySlaMs, states } = this.#deps;
    const { job } = held;
    const { txHash, ledger } = delivery;
    await this.auditReveal(job, delivery);
    const confirmedAtMs = clock.now();
    const sla = judgeSla(job, confirmedAtMs, highPrioritySlaMs);
    const { patch, onStored } = states.ending(held, stepsToConfirmed(job.currentState, txHash), {
      ...delivery,
      confirmedAt: new Date(confirmedAtMs),
      slaBreached: sla.breached || job.slaBreached,
    });
    return {
      kind: 'completed',
      patch,
      onStored: () => {
        onStored();
        tellLatency(this.#deps, job, sla);
        tellBreach(this.#deps, job, sla);
      },
      ...(ledger === null ? {} : { ledger }),
    };
  }

  /** The raffle needs nothing from us any more. No failure to rescue: the job ends as done, in state `failed`. */
  async over(held: HeldJob, code: string, reason: string): Promise<Ending> {
    await this.#auditAbandoned(held.job, code, reason);
    const steps = stepsToFailed(held.job.currentState, `${code}: ${reason}`, reason);
    return { kind: 'completed', ...this.#deps.states.ending(held, steps) };
  }

  /** Its time on chain has run out. Someone has to know: the raffle still waits, for its fallback. */
  tooLate(held: HeldJob, lastLedger: number): Ending {
    const message = `the raffle may fall back since ledger ${lastLedger}; nothing is sent any more`;
    return this.#dead(held, { code: 'REQUEST_TOO_LATE', message, kind: 'permanent', retryable: false });
  }

  /**
   * The job could do nothing about it: it waits, keeps its attempt and lets others go first. The reason stands in `lastError`,
   * for a job may wait long.
   */
  setAside(held: HeldJob, reason: string, delayMs: number, products: PhaseProducts = {}): Postponed {
    const steps: TransitionStep[] =
      held.job.currentState === 'queued' ? [] : [{ toState: 'retrying', reason, error: reason }];
    const { patch, onStored } = this.#deps.states.ending(held, steps, products);
    const waiting = { ...patch, lastError: reason };
    return { kind: 'postponed', delayMs, reason, yieldsPlace: true, patch: waiting, onStored };
  }

  /** Ends a job as an operator wants it. */
  giveUp(held: HeldJob, code: string, message: string): Ending {
    return this.failedTry(held, { code, message, kind: 'permanent', retryable: false });
  }

  failedTry(held: HeldJob, failure: Failure, products: PhaseProducts = {}): Ending {
    const { states } = this.#deps;
    const { attempt, maxAttempts } = held.lease;
    const { message } = failure;
    const isLast = !failure.retryable || attempt >= maxAttempts;
    const retrying: TransitionStep = { toState: 'retrying', reason: message, error: message };
    if (isLast && mayStillLand(held, products)) {
      // It would be called failed over a raffle that is served yet. What can be tried is tried on; where nothing can be, the
      // post-mortem of the dead letter finds out how the transaction ended, and gives the job its last state.
      if (failure.retryable)
        return this.setAside(
          held,
          `${message}; its transaction may still land`,
          UNDECIDED_RECHECK_MS,
          products,
        );
      return { kind: 'dead', failure, ...states.ending(held, [retrying], products) };
    }
    if (!failure.retryable) return this.#dead(held, failure, products);
    if (held.job.currentState === 'queued') {
      // Not even begun (the database or the slots failed): it goes on being queued, while it may.
      return attempt < maxAttempts ? { kind: 'retry', failure } : this.#dead(held, failure, products);
    }
    if (attempt < maxAttempts)
      return { kind: 'retry', failure, ...states.ending(held, [retrying], products) };
    const spent = spentStep(maxAttempts);
    return { kind: 'dead', failure, ...states.ending(held, [retrying, spent], products) };
  }

  #dead(held: HeldJob, failure: Failure, products: PhaseProducts = {}): Ending {
    const steps = stepsToFailed(held.job.currentState, failure.message);
    return { kind: 'dead', failure, ...this.#deps.states.ending(held, steps, products) };
  }

  async #auditAbandoned(job: StoredRandomnessJob, code: string, reason: string): Promise<void> {
    await this.#deps.audit.append({
      event: 'abandoned',
      eventKey: `${job.key}:abandoned:${code}`,
      requestId: job.requestId,
      raffleId: job.raffleId,
      data: { code, reason, contractId: job.contractId },
    });
  }
}

/** A delivery was signed and nothing has shown yet how it ended. */
const mayStillLand = ({ job }: HeldJob, products: PhaseProducts): boolean =>
  (products.txHash === undefined ? job.txHash : products.txHash) !== null;
