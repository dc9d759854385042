import { isDatabaseUnreachable } from '../platform/database/faults';
import { BusyError, TransientError, type Failure } from '../platform/errors';
import type {
  IntentId,
  SubmissionOutcome,
  SubmissionRequest,
  TransactionHash,
  TransactionSubmitter,
} from '../stellar/submission';
import type { JobContext, JobOutcome } from '../worker/job-handler';
import { meaningOfRefusal, raffleOverCodes, type RaffleView } from './contracts/raffle-contract';
import { classifyFailure } from './failure-classification';
import { Endings, type Delivery, type EndingsDeps } from './job-endings';
import type { HeldJob } from './job-state-manager';
import { unlessAborted, withinPhaseDeadline } from './phase-deadline';
import { isHighPriority } from './priority';
import type { ProcessingSlots } from './processing-slots';
import { RaffleCheck, type RaffleCheckDeps } from './raffle-check';
import type { RandomnessSeeker } from './randomness-generator';
import type { RandomnessJob, StoredRandomness } from './randomness-job.model';
import type { TransitionStep } from './randomness-lifecycle';

export interface ProcessorTimeouts {
  generationMs: number;
  submissionMs: number;
  confirmationMs: number;
}

export interface ProcessorDeps extends Omit<RaffleCheckDeps, 'endings'>, EndingsDeps {
  slots: ProcessingSlots;
  submitter: TransactionSubmitter;
  timeouts: ProcessorTimeouts;
}

export interface ProcessingResult {
  success: boolean;
  shouldRetry: boolean;
  error?: string;
  txHash?: string;
  ledger?: number;
  /** The same for the queue, with the last transitions to be written in one with it. */
  outcome: JobOutcome<RandomnessJob>;
}

/** A phase ends the try, or lets it go on. */
type PhaseResult = { kind: 'go_on' } | { kind: 'end'; outcome: JobOutcome<RandomnessJob> };

const goOn: PhaseResult = { kind: 'go_on' };
const end = (outcome: JobOutcome<RandomnessJob>): PhaseResult => ({ kind: 'end', outcome });
const leaseLost: PhaseResult = { kind: 'end', outcome: { kind: 'lease_lost' } };

const SLOT_WAIT_MS = 250;
const BUSY_RECHECK_MS = 1_000;

/**
 * One try at one job: generate, submit, confirm. Each phase stores its product under the lease before the next begins, so
 * that a retry, here or in another process, begins behind the last finished one.
 */
export class RandomnessProcessorService {
  readonly #deps: ProcessorDeps;
  readonly #endings: Endings;
  readonly #check: RaffleCheck;

  constructor(deps: ProcessorDeps) {
    this.#deps = deps;
    this.#endings = new Endings(deps);
    this.#check = new RaffleCheck({ ...deps, endings: this.#endings });
  }

  async processRequest(held: HeldJob, context: JobContext): Promise<ProcessingResult> {
    const slot = await this.#deps.slots.acquire(held.job.urgent);
    if (slot === null) {
      // The claim's attempt is given back: waiting for a slot is no try.
      return toResult(held, { kind: 'postponed', delayMs: SLOT_WAIT_MS, reason: 'no free processing slot' });
    }
    try {
      return toResult(held, await this.#try(held, context));
    } finally {
      await slot.release();
    }
  }

  /** For a delivery that was seen on chain, whoever sent it. `seed` is as the contract keeps it. */
  async concludeDelivered(
    held: HeldJob,
    { seed, txHash, ledger }: { seed: string; txHash: TransactionHash; ledger: number },
  ): Promise<JobOutcome<RandomnessJob>> {
    const randomness = await this.#check.ourRandomness(held.job, { deliveredSeed: seed });
    return randomness === null
      ? this.#endings.over(held, 'DELIVERED_BY_ANOTHER', 'the raffle was given another seed')
      : this.#endings.confirmed(held, { randomness, txHash, ledger });
  }

  /** Whether `seed`, as the contract keeps it, is what this job makes. */
  async isOurs(job: RandomnessJob, seed: string): Promise<boolean> {
    return (await this.#check.ourRandomness(job, { deliveredSeed: seed })) !== null;
  }

  /** A commitment that the raffle holds is opened; it would be worth nothing if we could still choose another seed. */
  async randomnessFor(job: RandomnessSeeker, view: RaffleView): Promise<StoredRandomness> {
    const { generator } = this.#deps;
    const held = await this.#check.heldOpening(job, view);
    if (held !== null) return generator.reveal(job, held.opening, held.raffleId);
    return generator.generate(job, generator.methodFor(view.prizeXlm ?? job.prizeXlm));
  }

  async #try(held: HeldJob, context: JobContext): Promise<JobOutcome<RandomnessJob>> {
    const { signal } = context;
    try {
      for (const phase of [
        () => this.#generate(held, signal),
        () => this.#submit(held, signal),
        () => this.#confirm(held, signal),
      ]) {
        signal.throwIfAborted();
        const result = await phase();
        if (result.kind === 'end') return result.outcome;
      }
      throw new TypeError('confirming did not end the try');
    } catch (error) {
      // What a lost lease or a shutdown interrupted has no meaning of its own; and our own database being away says
      // nothing of the job, nor could anything be written of it.
      if (signal.aborted || isDatabaseUnreachable(error)) throw error;
      if (error instanceof BusyError)
        return this.#endings.setAside(held, error.message, error.retryAfterMs ?? BUSY_RECHECK_MS);
      const failure = classifyFailure(error);
      context.logger.warn(
        { err: error, code: failure.code, retryable: failure.retryable },
        'randomness try failed',
      );
      return this.#endings.failedTry(held, failure);
    }
  }

  #generate(held: HeldJob, parent: AbortSignal): Promise<PhaseResult> {
    const { timeouts } = this.#deps;
    return withinPhaseDeadline(
      { parent, timeoutMs: timeouts.generationMs, code: 'GENERATION_TIMEOUT' },
      async (signal) => {
        const counted = await this.#deps.states.incrementAttempt(held);
        if (counted.kind === 'lease_lost') return leaseLost;
        // A delivery is on its way: its own hash tells how it ended, better than the raffle's state could.
        if (held.job.txHash !== null && held.job.randomness !== null) return this.#enterGenerating(held);
        const raffle = await this.#lookAtRaffle(held, signal);
        if (raffle.kind === 'end') return raffle;
        if (held.job.randomness !== null) return goOn;
        const randomness = await unlessAborted(this.randomnessFor(held.job, raffle.view), signal);
        await this.#endings.auditCommitment(held.job, randomness);
        const written = await this.#deps.states.takeSteps(
          held,
          [{ toState: 'submitting', reason: 'Randomness computed' }],
          { randomness },
        );
        return written.kind === 'lease_lost' ? leaseLost : goOn;
      },
    );
  }

  /**
   * Reads the raffle before the job leaves `queued`, since `queued → failed` is the way out for one that is over. If it
   * can't be read the job enters `generating` and the failure counts there.
   */
  async #lookAtRaffle(
    held: HeldJob,
    signal: AbortSignal,
  ): Promise<{ kind: 'view'; view: RaffleView } | Extract<PhaseResult, { kind: 'end' }>> {
    let view: RaffleView;
    try {
      view = await this.#deps.contract.view(held.job, signal);
      const over = await this.#check.endingOf(held, view, signal);
      if (over !== null) return { kind: 'end', outcome: over };
    } catch (error) {
      await this.#enterGenerating(held);
      throw error;
    }
    const entered = await this.#enterGenerating(held);
    return entered.kind === 'end' ? entered : { kind: 'view', view };
  }

  async #enterGenerating(held: HeldJob): Promise<PhaseResult> {
    const steps: TransitionStep[] = [];
    if (held.job.currentState !== 'queued' && held.job.currentState !== 'retrying') {
      steps.push({ toState: 'retrying', reason: 'Worker died or was stopped' });
    }
    steps.push({
      toState: 'generating',
      reason: held.job.currentState === 'queued' ? 'Processing slot acquired' : 'Next attempt',
    });
    if (held.job.randomness !== null)
      steps.push({ toState: 'submitting', reason: 'Randomness computed before' });
    const written = await this.#deps.states.takeSteps(held, steps);
    return written.kind === 'lease_lost' ? leaseLost : goOn;
  }

  #submit(held: HeldJob, parent: AbortSignal): Promise<PhaseResult> {
    const { timeouts, submitter, states } = this.#deps;
    return withinPhaseDeadline(
      { parent, timeoutMs: timeouts.submissionMs, code: 'SUBMISSION_TIMEOUT' },
      async (signal) => {
        if (held.job.txHash === null) {
          const late = await this.#check.endingIfTooLate(held, signal);
          if (late !== null) return end(late);
          const request = await this.#submission(held);
          const prepared = await submitter.prepare(request, signal);
          if (prepared.kind !== 'prepared') return this.#concluded(held, prepared, signal);
          const stored = await states.record(held, { txHash: prepared.hash });
          if (stored.kind === 'lease_lost') return leaseLost;
          const sent = await submitter.send(request, signal);
          if (sent.kind !== 'sent') return this.#concluded(held, sent, signal);
        }
        const moved = await states.transitionState(held, 'confirming', 'Transaction sent');
        return moved.kind === 'lease_lost' ? leaseLost : goOn;
      },
    );
  }

  #confirm(held: HeldJob, parent: AbortSignal): Promise<PhaseResult> {
    const { timeouts, submitter } = this.#deps;
    // The submitter ends by its own timeout, knowing then that it doesn't know. The deadline behind it is for one that hangs.
    return withinPhaseDeadline(
      { parent, timeoutMs: timeouts.confirmationMs * 2, code: 'CONFIRMATION_TIMEOUT' },
      async (signal) => {
        const request = await this.#submission(held);
        const outcome = await submitter.confirm(request, { timeoutMs: timeouts.confirmationMs, signal });
        return this.#concluded(held, outcome, signal);
      },
    );
  }

  async #concluded(held: HeldJob, outcome: SubmissionOutcome, signal: AbortSignal): Promise<PhaseResult> {
    const randomness = made(held);
    switch (outcome.kind) {
      case 'success':
        return end(
          await this.#endings.confirmed(held, { randomness, txHash: outcome.hash, ledger: outcome.ledger }),
        );
      case 'already_done':
        return outcome.evidence.ours
          ? end(await this.#endings.confirmed(held, evidenceDelivery(held, randomness, outcome.evidence)))
          : end(await this.#endings.over(held, 'DELIVERED_BY_ANOTHER', outcome.evidence.summary));
      case 'rejected':
        return this.#rejected(held, outcome, signal);
      case 'expired':
        return end(
          this.#endings.failedTry(held, retriable('TX_EXPIRED', 'the transaction expired unseen'), {
            txHash: null,
          }),
        );
      case 'unknown':
        return end(
          this.#endings.failedTry(held, retriable('CONFIRMATION_TIMEOUT', 'Confirmation timeout'), {
            txHash: outcome.hash,
          }),
        );
      case 'superseded':
        return leaseLost;
    }
  }

  async #rejected(
    held: HeldJob,
    outcome: Extract<SubmissionOutcome, { kind: 'rejected' }>,
    signal: AbortSignal,
  ): Promise<PhaseResult> {
    const { contract } = this.#deps;
    switch (meaningOfRefusal(outcome.contractCode)) {
      case 'over': {
        const view = await contract.view(held.job, signal);
        const over = await this.#check.endingOf(held, view, signal);
        if (over !== null) return end(over);
        break;
      }
      case 'too_early':
        return end(this.#endings.failedTry(held, retriable(outcome.code, outcome.message), { txHash: null }));
      case 'permanent':
        break;
    }
    const { code, message, hash } = outcome;
    const told = hash === undefined ? message : `${message} (transaction ${hash})`;
    return end(
      this.#endings.failedTry(
        held,
        { code, message: told, kind: 'rejected', retryable: false },
        { txHash: null },
      ),
    );
  }

  async #submission(held: HeldJob): Promise<SubmissionRequest> {
    const { contract, generator } = this.#deps;
    const { job, lease } = held;
    const randomness = made(held);
    return {
      intent: `randomness:${job.requestId}` as IntentId,
      epoch: lease.epoch,
      call: await contract.deliveryCall(job, randomness, generator.signerFor(randomness)),
      feeClass: isHighPriority(job.priorityLevel) ? 'urgent' : 'standard',
      alreadyDoneCodes: raffleOverCodes,
      findEvidence: async (signal) => {
        const view = await contract.view(job, signal);
        if (view.status === 'cancelled') return { ours: false, summary: 'the raffle was cancelled' };
        if (view.status !== 'finalized') return null;
        const ours = view.deliveredSeed === contract.seedOnChain(randomness);
        return {
          ours,
          summary: ours ? 'the raffle holds our seed' : 'the raffle was finalized by another seed',
        };
      },
    };
  }
}

function made({ job }: HeldJob): StoredRandomness {
  if (job.randomness === null) throw new TypeError('a job in submitting has randomness');
  return job.randomness;
}

function evidenceDelivery(
  held: HeldJob,
  randomness: StoredRandomness,
  evidence: { transactionHash?: Delivery['txHash'] & string; ledger?: number },
): Delivery {
  return {
    randomness,
    txHash: evidence.transactionHash ?? held.job.txHash,
    ledger: evidence.ledger ?? null,
  };
}

const retriable = (code: string, message: string): Failure =>
  classifyFailure(new TransientError(code, message));

function toResult({ job }: HeldJob, outcome: JobOutcome<RandomnessJob>): ProcessingResult {
  const error = outcome.kind === 'postponed' ? outcome.reason : job.lastError;
  return {
    success: outcome.kind === 'completed' && job.currentState === 'confirmed',
    shouldRetry: outcome.kind === 'retry' || outcome.kind === 'postponed',
    ...(error === null || job.currentState === 'confirmed' ? {} : { error }),
    ...(job.txHash === null ? {} : { txHash: job.txHash }),
    ...(job.ledger === null ? {} : { ledger: job.ledger }),
    outcome,
  };
}
