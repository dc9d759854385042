import { randomUUID } from 'node:crypto';
import type { Clock } from '../platform/clock';
import { describeFailure } from '../platform/errors';
import type { Logger } from '../platform/logger';
import type { FeeEstimator } from '../stellar/submission';
import type { SoloRunner } from '../worker/solo-runner';
import type { AuditData, AuditEvent } from './audit-chain';
import type { AuditTrail } from './audit-trail';
import type { RaffleContract, RaffleJob, RaffleView } from './contracts/raffle-contract';
import type { Endings } from './job-endings';
import type { RandomnessDeadLetters } from './randomness-dead-letters';
import type { RandomnessGenerator, RandomnessSeeker } from './randomness-generator';
import type { RandomnessProcessorService } from './randomness-processor.service';
import type { RandomnessJob, StoredRandomness, StoredRandomnessJob } from './randomness-job.model';
import type { RandomnessJobs } from './randomness-jobs.repository';
import { jobStates, randomnessLifecycle } from './randomness-lifecycle';
import type { RandomnessService } from './randomness.service';
import { type DrawReport, reportDraw } from './stuck-report';

/** Who did it and why; both are stored for good. */
export interface Operator {
  operator: string;
  reason: string;
}

export type RescueResult =
  | { kind: 'done'; message: string; details: AuditData }
  /** It would be wrong to do it; nothing was changed. */
  | { kind: 'refused'; message: string }
  | { kind: 'not_found'; message: string };

export interface ForceSubmitRequest {
  raffleId: number | null;
  requestId: string;
  prizeXlm?: number;
}

/** What a rescue would do. */
export interface RescuePreview {
  requestId: string;
  raffleId: number | null;
  jobId: string | null;
  state: string | null;
  phase: string | null;
  contractId: string;
  contractStatus: RaffleView['status'] | 'unknown';
  prizeXlm: number | null;
  method: string;
  sourceAccount: string;
  /** Whole stroops in text; null where the delivery can't be simulated, for `feeProblem`. */
  feeEstimateStroops: string | null;
  feeProblem: string | null;
}

export interface RescueServiceDeps {
  jobs: RandomnessJobs;
  service: RandomnessService;
  deadLetters: RandomnessDeadLetters;
  runner: SoloRunner<RandomnessJob>;
  generator: RandomnessGenerator;
  contract: RaffleContract;
  contractId: string;
  feeEstimator: FeeEstimator;
  endings: Endings;
  processor: Pick<RandomnessProcessorService, 'randomnessFor'>;
  audit: AuditTrail;
  latestLedger: (signal: AbortSignal) => Promise<number>;
  clock: Clock;
  logger: Logger;
}

const READ_TIMEOUT_MS = 15_000;
const LIST_LIMIT = 500;

/**
 * What an operator may do to a job. Each goes through the job's own lease or a guarded transition, so that a rescue and the
 * queue can't both deliver, and each is written to the audit trail whatever it came to.
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

  async preview({ requestId, raffleId, prizeXlm }: ForceSubmitRequest): Promise<RescuePreview> {
    const { service, generator, contractId } = this.#deps;
    const identity = service.identityOf(contractId, requestId);
    const job = await this.#deps.jobs.find(identity);
    const seeker: RandomnessSeeker = job ?? {
      contractId,
      contractRequestId: requestId,
      raffleId,
      prizeXlm: prizeXlm ?? null,
      oracleKey: generator.publicKey().address,
    };
    const view = await this.#view(seeker);
    const prize = view?.prizeXlm ?? prizeXlm ?? seeker.prizeXlm;
    return {
      requestId: identity,
      raffleId: seeker.raffleId,
      jobId: job?._id.toHexString() ?? null,
      state: job?.currentState ?? null,
      phase: job?.phase ?? null,
      contractId: seeker.contractId,
      contractStatus: view?.status ?? 'unknown',
      prizeXlm: prize,
      ...(await this.#delivery(seeker, job?.randomness ?? null, view, prize)),
      sourceAccount: generator.publicKey().address,
    };
  }

  /** By simulating the very delivery. Its seed stays in here. */
  async #delivery(
    seeker: RandomnessSeeker,
    stored: StoredRandomness | null,
    view: RaffleView | null,
    prizeXlm: number | null,
  ): Promise<Pick<RescuePreview, 'method' | 'feeEstimateStroops' | 'feeProblem'>> {
    const { contract, feeEstimator, generator, processor } = this.#deps;
    if (view === null) {
      const method = stored?.method ?? generator.methodFor(prizeXlm);
      return { method, feeEstimateStroops: null, feeProblem: 'the raffle could not be read' };
    }
    const randomness = stored ?? (await processor.randomnessFor(seeker, view));
    const { method } = randomness;
    try {
      const call = await contract.deliveryCall(seeker, randomness, generator.signerFor(randomness));
      const signal = AbortSignal.timeout(READ_TIMEOUT_MS);
      const { inclusionStroops, resourceStroops } = await feeEstimator.estimate(call, 'urgent', signal);
      return { method, feeEstimateStroops: String(inclusionStroops + resourceStroops), feeProblem: null };
    } catch (error) {
      return { method, feeEstimateStroops: null, feeProblem: describeFailure(error).message };
    }
  }

  /** Sends a dead job back to work, with fresh attempts and its old priority. */
  reEnqueue(id: string, operator: Operator): Promise<RescueResult> {
    return this.#logged('rescue_re_enqueue', id, operator, async (job) => {
      if (job === null) return notFound(id);
      const over = await this.#refusalIfOver(job);
      if (over !== null) return over;
      const replayed = await this.#deps.deadLetters.replay(
        job._id.toHexString(),
        {},
        `Re-enqueued by ${operator.operator}: ${operator.reason}`,
      );
      if (replayed.kind === 'not_found') return notFound(id);
      if (replayed.kind === 'not_dead') {
        return {
          kind: 'refused',
          message: `the job is ${job.currentState}, not dead: there is nothing to re-enqueue`,
        };
      }
      return { kind: 'done', message: 'the job is queued again', details: { replays: replayed.job.replays } };
    });
  }

  /** Delivers now, from this process, under the job's lease. Makes the job where there is none. */
  forceSubmit(request: ForceSubmitRequest, operator: Operator, signal?: AbortSignal): Promise<RescueResult> {
    const { service, contractId } = this.#deps;
    const id = service.identityOf(contractId, request.requestId);
    return this.#logged('rescue_force_submit', id, operator, async (known) => {
      const facts = known ?? { contractId, contractRequestId: request.requestId, raffleId: request.raffleId };
      const over = await this.#refusalIfOver(facts);
      if (over !== null) return over;
      const { job } = await service.ensureJob({
        requestId: request.requestId,
        raffleId: request.raffleId,
        source: 'operator',
        priority: 'critical',
        ...(request.prizeXlm === undefined ? {} : { prizeXlm: request.prizeXlm }),
      });
      const jobId = job._id.toHexString();
      if (job.phase === 'dead') {
        await this.#deps.deadLetters.replay(jobId, {}, `Forced by ${operator.operator}: ${operator.reason}`);
      }
      const run = await this.#deps.runner.run(jobId, undefined, signal);
      if (run.kind === 'not_available') return this.#notAvailable(job.requestId);
      const after = await this.find(job.requestId);
      const { currentState = 'unknown', txHash = null, ledger = null, lastError = null } = after ?? {};
      return currentState === 'confirmed'
        ? {
            kind: 'done',
            message: 'the randomness is on chain',
            details: { state: currentState, txHash, ledger },
          }
        : {
            kind: 'refused',
            message: `not delivered: the job is ${currentState}${lastError === null ? '' : ` (${lastError})`}`,
          };
    });
  }

  /**
   * Gives up a job that waits. One that a worker holds is left to it. Of one whose transaction may still land, the
   * post-mortem waits for how that ends.
   */
  forceFail(id: string, { operator, reason }: Operator): Promise<RescueResult> {
    return this.#logged('rescue_force_fail', id, { operator, reason }, async (job) => {
      if (job === null) return notFound(id);
      if (randomnessLifecycle.isTerminal(job.currentState)) {
        return { kind: 'refused', message: `the job is ${job.currentState} already` };
      }
      const message = `given up by ${operator}: ${reason}`;
      const run = await this.#deps.runner.run(job._id.toHexString(), (claimed) =>
        Promise.resolve(
          this.#deps.endings.giveUp({ lease: claimed.lease, job: claimed.job }, 'FORCE_FAILED', message),
        ),
      );
      if (run.kind === 'not_available') return this.#notAvailable(job.requestId);
      if (run.ending !== 'dead_lettered') {
        return {
          kind: 'refused',
          message: 'the lease was lost while the job was being given up: look again',
        };
      }
      const state = (await this.find(job.requestId))?.currentState ?? 'failed';
      return {
        kind: 'done',
        message: !randomnessLifecycle.isTerminal(state)
          ? `the job is given up; its transaction ${String(job.txHash)} may still land: then it ends as confirmed, else as failed`
          : `the job is ${state}`,
        details: { state },
      };
    });
  }

  async listFailed(): Promise<StoredRandomnessJob[]> {
    return this.#list(['failed', 'dead-lettered']);
  }

  async listAll(): Promise<StoredRandomnessJob[]> {
    return this.#list(jobStates);
  }

  /** Open jobs, each with how late it is. Raffles are asked one by one; the report is for people. */
  async reportOpen(): Promise<DrawReport[]> {
    const { latestLedger, clock } = this.#deps;
    const open = await this.#list(jobStates.filter((state) => !randomnessLifecycle.isTerminal(state)));
    const currentLedger = await latestLedger(AbortSignal.timeout(READ_TIMEOUT_MS)).catch(() => null);
    const reports: DrawReport[] = [];
    for (const job of open) {
      const view = await this.#view(job);
      reports.push(
        reportDraw(job, { nowMs: clock.now(), currentLedger, contractStatus: view?.status ?? 'unknown' }),
      );
    }
    return reports;
  }

  async #list(states: readonly (typeof jobStates)[number][]): Promise<StoredRandomnessJob[]> {
    const pages = await Promise.all(states.map((state) => this.#deps.jobs.pageByState(state, LIST_LIMIT)));
    return pages.flatMap(({ jobs }) => jobs);
  }

  async #notAvailable(requestId: string): Promise<RescueResult> {
    const job = await this.find(requestId);
    const message =
      job !== null && randomnessLifecycle.isTerminal(job.currentState)
        ? `the job is ${job.currentState} already`
        : `worker ${job?.lease?.workerId ?? 'unknown'} holds the job right now: look again shortly`;
    return { kind: 'refused', message };
  }

  async #refusalIfOver(job: RaffleJob): Promise<RescueResult | null> {
    const view = await this.#view(job);
    if (view?.status !== 'finalized' && view?.status !== 'cancelled') return null;
    return { kind: 'refused', message: `the raffle is ${view.status}` };
  }

  /** Null when the network can't be asked: a rescue must stay possible then. */
  async #view(job: RaffleJob): Promise<RaffleView | null> {
    try {
      return await this.#deps.contract.view(job, AbortSignal.timeout(READ_TIMEOUT_MS));
    } catch (error) {
      this.#deps.logger.warn({ err: error }, 'the raffle could not be read');
      return null;
    }
  }

  async #logged(
    event: AuditEvent,
    id: string,
    { operator, reason }: Operator,
    act: (job: StoredRandomnessJob | null) => Promise<RescueResult>,
  ): Promise<RescueResult> {
    const job = await this.find(id);
    const entry = (result: string, details: AuditData) =>
      this.#deps.audit.append({
        event,
        eventKey: `${event}:${randomUUID()}`,
        requestId: job?.requestId ?? id,
        raffleId: job?.raffleId ?? null,
        data: { operator, reason, result, ...details },
      });
    try {
      const result = await act(job);
      await entry(result.kind, result.kind === 'done' ? result.details : { message: result.message });
      this.#deps.logger.warn(
        { event, id, operator, reason, result: result.kind },
        `rescue: ${result.message}`,
      );
      return result;
    } catch (error) {
      await entry('error', { message: error instanceof Error ? error.message : String(error) });
      throw error;
    }
  }
}

const notFound = (id: string): RescueResult => ({ kind: 'not_found', message: `there is no job ${id}` });
