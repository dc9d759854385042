import { createHash } from 'node:crypto';
import type { Clock } from '../platform/clock';
import type { Failure } from '../platform/errors';
import type { Metrics } from '../platform/metrics';
import type { TransactionHash } from '../stellar/submission';
import type { JobOutcome } from '../worker/job-handler';
import type { AuditTrail } from './audit-trail';
import type { HeldJob, JobStateManager, PhaseProducts } from './job-state-manager';
import type { RandomnessJob, StoredRandomness } from './randomness-job.model';
import { stepsToFailed, type JobState, type TransitionStep } from './randomness-lifecycle';
import { judgeSla } from './sla';

export interface EndingsDeps {
  states: JobStateManager;
  audit: AuditTrail;
  highPrioritySlaMs: number;
  clock: Clock;
  metrics: Metrics;
}

export interface Delivery {
  randomness: StoredRandomness;
  txHash: TransactionHash | null;
  ledger: number | null;
}

type Ending = JobOutcome<RandomnessJob>;

const UNDECIDED_RECHECK_MS = 5_000;

/** From each state, what a job that is delivered still has to pass on its way to `confirmed`. */
const wayToConfirmed: Readonly<Partial<Record<JobState, readonly JobState[]>>> = {
  queued: ['generating', 'submitting', 'confirming', 'confirmed'],
  retrying: ['generating', 'submitting', 'confirming', 'confirmed'],
  generating: ['submitting', 'confirming', 'confirmed'],
  submitting: ['confirming', 'confirmed'],
  confirming: ['confirmed'],
};

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
  async auditCommitment(job: RandomnessJob, randomness: StoredRandomness): Promise<void> {
    const commitment = createHash('sha256').update(Buffer.from(randomness.seed, 'hex')).digest('hex');
    await this.#deps.audit.append({
      event: 'committed',
      eventKey: `${job.requestId}:committed:${commitment}`,
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

  async confirmed(held: HeldJob, delivery: Delivery): Promise<Ending> {
    const { audit, clock, highPrioritySlaMs, states } = this.#deps;
    const { job } = held;
    const { randomness, txHash, ledger } = delivery;
    await audit.append({
      event: 'revealed',
      eventKey: `${job.requestId}:revealed`,
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
    const confirmedAtMs = clock.now();
    const sla = judgeSla(job, confirmedAtMs, highPrioritySlaMs);
    const reason = txHash === null ? 'Our randomness is on chain' : 'Transaction status = SUCCESS';
    const steps = (wayToConfirmed[job.currentState] ?? []).map((toState): TransitionStep => ({
      toState,
      reason,
    }));
    const patch = states.endingPatch(held, steps, {
      randomness,
      txHash,
      ledger,
      confirmedAt: new Date(confirmedAtMs),
      slaBreached: sla.breached,
    });
    states.tellSla(job, sla);
    return { kind: 'completed', patch, ...(ledger === null ? {} : { ledger }) };
  }

  /** The raffle needs nothing from us any more. No failure to rescue: the job ends as done, in state `failed`. */
  async over(held: HeldJob, code: string, reason: string): Promise<Ending> {
    await this.#auditAbandoned(held.job, code, reason);
    const { states } = this.#deps;
    return {
      kind: 'completed',
      patch: states.endingPatch(held, stepsToFailed(held.job.currentState, `${code}: ${reason}`, reason)),
    };
  }

  /** Its time on chain has run out. Someone has to know: the raffle still waits, for its fallback. */
  tooLate(held: HeldJob, lastLedger: number): Ending {
    const message = `the raffle may fall back since ledger ${lastLedger}; nothing is sent any more`;
    return this.#dead(held, { code: 'REQUEST_TOO_LATE', message, kind: 'permanent', retryable: false });
  }

  /** The job could do nothing about it: it waits, and keeps its attempt. */
  setAside(held: HeldJob, reason: string, delayMs: number, products: PhaseProducts = {}): Ending {
    const waiting: TransitionStep[] =
      held.job.currentState === 'queued' ? [] : [{ toState: 'retrying', reason }];
    return {
      kind: 'postponed',
      delayMs,
      reason,
      patch: this.#deps.states.endingPatch(held, waiting, products),
    };
  }

  failedTry(held: HeldJob, failure: Failure, products: PhaseProducts = {}): Ending {
    const { states } = this.#deps;
    const { attempt, maxAttempts } = held.lease;
    const isLast = !failure.retryable || attempt >= maxAttempts;
    if (isLast && mayStillLand(held, products)) {
      // A job has no end while a transaction of it may land: it would be called failed over a raffle that was served.
      const reason = `${failure.message}; its transaction may still land`;
      return this.setAside(held, reason, UNDECIDED_RECHECK_MS, products);
    }
    if (!failure.retryable) return this.#dead(held, failure, products);
    if (held.job.currentState === 'queued') {
      // Not even begun (the database or the slots failed): it goes on being queued, while it may.
      return attempt < maxAttempts ? { kind: 'retry', failure } : this.#dead(held, failure, products);
    }
    const retrying: TransitionStep = { toState: 'retrying', reason: failure.message, error: failure.message };
    if (attempt < maxAttempts) {
      return { kind: 'retry', failure, patch: states.endingPatch(held, [retrying], products) };
    }
    const spent: TransitionStep = {
      toState: 'dead-lettered',
      reason: `Exhausted all ${maxAttempts} attempts`,
    };
    return { kind: 'dead', failure, patch: states.endingPatch(held, [retrying, spent], products) };
  }

  #dead(held: HeldJob, failure: Failure, products: PhaseProducts = {}): Ending {
    const steps = stepsToFailed(held.job.currentState, failure.message);
    return { kind: 'dead', failure, patch: this.#deps.states.endingPatch(held, steps, products) };
  }

  async #auditAbandoned(job: RandomnessJob, code: string, reason: string): Promise<void> {
    await this.#deps.audit.append({
      event: 'abandoned',
      eventKey: `${job.requestId}:abandoned:${code}`,
      requestId: job.requestId,
      raffleId: job.raffleId,
      data: { code, reason, contractId: job.contractId },
    });
  }
}

/** A delivery was signed and nothing has shown yet how it ended. */
const mayStillLand = ({ job }: HeldJob, products: PhaseProducts): boolean =>
  (products.txHash === undefined ? job.txHash : products.txHash) !== null;
