import { isDatabaseUnreachable } from '../../platform/database/faults';
import { BusyError, describeFailure, PermanentError } from '../../platform/errors';
import { NOTHING_PREPARED, type TransactionHash, type TransactionSubmitter } from '../../stellar/submission';
import type { JobContext, JobOutcome } from '../../worker/job-handler';
import type { RaffleContract, RaffleView } from '../contracts/raffle-contract';
import type { DeliveryOutcomes } from './delivery-outcomes';
import type { DeliveryRequests } from './delivery-requests';
import { classifyFailure } from './failure-classification';
import type { Endings } from './job-endings';
import type { HeldJob, JobStateManager, TransitionResult } from '../jobs/job-state-manager';
import { unlessAborted, withinPhaseDeadline } from './phase-deadline';
import type { ProcessingSlots } from './processing-slots';
import type { RaffleCheck } from './raffle-check';
import type { RandomnessGenerator, RandomnessSeeker } from '../seeds/randomness-generator';
import type { RandomnessJob, StoredRandomness, StoredRandomnessJob } from '../jobs/randomness-job.model';
import type { TransitionStep } from '../jobs/randomness-lifecycle';

export interface ProcessorTimeouts {
  generationMs: number;
  submissionMs: number;
  confirmationMs: number;
}

export interface ProcessorDeps {
  states: JobStateManager;
  slots: ProcessingSlots;
  generator: RandomnessGenerator;
  contract: RaffleContract;
  check: RaffleCheck;
  requests: DeliveryRequests;
  outcomes: DeliveryOutcomes;
  endings: Endings;
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

  constructor(deps: ProcessorDeps) {
    this.#deps = deps;
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

  /**
   * For a delivery that an event tells of, whoever sent it. An event is one node's word; before it ends a job the raffle
   * itself is asked. `seed` is as the contract keeps it.
   */
  async concludeDelivered(
    held: HeldJob,
    { seed, txHash, ledger }: { seed: string; txHash: TransactionHash; ledger: number },
    signal: AbortSignal,
  ): Promise<JobOutcome<RandomnessJob>> {
    const { check, contract } = this.#deps;
    let view: RaffleView;
    try {
      view = await contract.view({ ...held.job, requestedAtLedger: ledger }, signal);
    } catch (error) {
      return { kind: 'postponed', delayMs: 0, reason: describeFailure(error).message };
    }
    const delivery = view.deliveredSeed === seed ? { txHash, ledger } : undefined;
    const ending = await check.endingIfOver(held, view, signal, delivery);
    return ending ?? { kind: 'postponed', delayMs: 0, reason: 'the raffle shows no delivery' };
  }

  /** Whether `seed`, as the contract keeps it, is what this job makes. */
  async isOurs(job: StoredRandomnessJob, seed: string, signal: AbortSignal): Promise<boolean> {
    return (await this.#deps.check.ourRandomness(job, { deliveredSeed: seed }, signal)) !== null;
  }

  /** A commitment that the raffle holds is opened; it would be worth nothing if we could still choose another seed. */
  async randomnessFor(job: RandomnessSeeker, view: RaffleView): Promise<StoredRandomness> {
    const { generator } = this.#deps;
    const held = await this.#deps.check.heldOpening(job, view);
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
      if (error instanceof BusyError) {
        const busy = this.#deps.endings.setAside(held, error.message, error.retryAfterMs ?? BUSY_RECHECK_MS);
        return { ...busy, yieldsPlace: false };
      }
      // The submitter has no record of the transaction that the job names: the next try prepares one.
      if (error instanceof PermanentError && error.code === NOTHING_PREPARED)
        return this.#deps.endings.failedTry(
          held,
          { ...describeFailure(error), retryable: true },
          { txHash: null },
        );
      const failure = classifyFailure(error);
      context.logger.warn(
        { err: error, code: failure.code, retryable: failure.retryable },
        'randomness try failed',
      );
      return this.#deps.endings.failedTry(held, failure);
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
        await this.#deps.endings.auditCommitment(held.job, randomness);
        const written = await this.#deps.states.takeSteps(
          held,
          [{ toState: 'submitting', reason: 'Randomness computed' }],
          { randomness },
        );
        return after(written);
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
      const over = await this.#deps.check.endingOf(held, view, signal);
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
    return after(written);
  }

  #submit(held: HeldJob, parent: AbortSignal): Promise<PhaseResult> {
    const { timeouts, submitter, states, requests, outcomes, check } = this.#deps;
    return withinPhaseDeadline(
      { parent, timeoutMs: timeouts.submissionMs, code: 'SUBMISSION_TIMEOUT' },
      async (signal) => {
        if (held.job.txHash === null) {
          const late = await check.endingIfTooLate(held, signal);
          if (late !== null) return end(late);
          const request = await requests.of(held.job, held.lease.epoch, signal);
          const prepared = await submitter.prepare(request, signal);
          if (prepared.kind !== 'prepared') return end(await outcomes.conclude(held, prepared, signal));
          const stored = await states.record(held, { txHash: prepared.hash, seedSigned: true });
          if (stored.kind === 'lease_lost') return leaseLost;
          const sent = await submitter.send(request, signal);
          if (sent.kind !== 'sent') return end(await outcomes.conclude(held, sent, signal));
        }
        const moved = await states.transitionState(held, 'confirming', 'Transaction sent');
        return after(moved);
      },
    );
  }

  #confirm(held: HeldJob, parent: AbortSignal): Promise<PhaseResult> {
    const { timeouts, submitter, requests, outcomes } = this.#deps;
    // The submitter ends by its own timeout, knowing then that it doesn't know. The deadline behind it is for one that hangs.
    return withinPhaseDeadline(
      { parent, timeoutMs: timeouts.confirmationMs * 2, code: 'CONFIRMATION_TIMEOUT' },
      async (signal) => {
        const request = await requests.of(held.job, held.lease.epoch, signal);
        const outcome = await submitter.confirm(request, { timeoutMs: timeouts.confirmationMs, signal });
        return end(await outcomes.conclude(held, outcome, signal));
      },
    );
  }
}

/** @throws RangeError for a transition that the table forbids: a mistake of our program, which going on would only hide. */
function after(written: TransitionResult): PhaseResult {
  if (written.kind === 'illegal') {
    throw new RangeError(`${written.fromState} → ${written.toState} is not a transition of a randomness job`);
  }
  return written.kind === 'lease_lost' ? leaseLost : goOn;
}

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
