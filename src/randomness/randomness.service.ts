import type { Clock } from '../platform/clock';
import { TransientError } from '../platform/errors';
import { type FieldProblem, HttpProblem, invalidInput, notFound } from '../platform/problem';
import { OPENING_BYTES } from './seeds/commit-reveal';
import type { Commitments } from './seeds/commitments.repository';
import type { RaffleContract, RaffleJob } from './contracts/raffle-contract';
import type { JobStateManager } from './jobs/job-state-manager';
import { priorityOf, type PriorityFlag, type PriorityThresholds, type PriorityLevel } from './jobs/priority';
import type { RandomnessClaim, RandomnessGenerator, RandomnessVerdict } from './seeds/randomness-generator';
import type { RequestSource, StoredRandomnessJob } from './jobs/randomness-job.model';
import type { RandomnessJobs } from './jobs/randomness-jobs.repository';
import { requestView, type RequestView } from './http/views';

export interface Submission {
  /** As the contract counts it. */
  requestId: string;
  raffleId: number | null;
  /** C…; left out: the configured one. */
  contractId?: string;
  prizeXlm?: number;
  priority?: PriorityFlag;
  source: RequestSource;
  /** Left out: now. */
  requestedAt?: Date;
  requestedAtLedger?: number;
}

export interface Submitted {
  /** The job's identity: where each raffle is a contract of its own, `contract:request`. */
  requestId: string;
  state: string;
  /** It had been asked for before; this is the first one, whatever else the second asked. */
  alreadyThere: boolean;
}

export type VerifyQuery = Partial<Pick<RandomnessClaim, 'contractId' | 'raffleId' | 'commitment'>> &
  Pick<RandomnessClaim, 'requestId' | 'proof' | 'seed' | 'publicKey'>;

/** Where the commitment is from that a reveal was judged by; null: there is none, so nothing was revealed. */
export type CommitmentSource = 'here' | 'chain' | 'caller' | null;

export type VerifyAnswer = RandomnessVerdict & { commitmentFrom?: CommitmentSource };

const CHAIN_TIMEOUT_MS = 5_000;

export interface RandomnessServiceDeps {
  states: JobStateManager;
  jobs: RandomnessJobs;
  commitments: Commitments;
  generator: RandomnessGenerator;
  contract: RaffleContract;
  /** Of requests that name no contract; null where each has to. */
  contractId: string | null;
  oracleKey: () => string;
  thresholds: PriorityThresholds;
  /** Tells idle lanes that there is work. */
  wake: () => void;
  clock: Clock;
}

export class RandomnessService {
  readonly #deps: RandomnessServiceDeps;

  constructor(deps: RandomnessServiceDeps) {
    this.#deps = deps;
  }

  async submit(submission: Submission): Promise<Submitted> {
    const { kind, job } = await this.ensureJob(submission);
    return { requestId: job.requestId, state: job.currentState, alreadyThere: kind === 'already_there' };
  }

  /**
   * @throws HttpProblem 400 for a request that the contract's interface has no use for; 409 for one by hand whose id another
   * request has. One that the chain itself tells of is taken in all the same.
   */
  async ensureJob(
    submission: Submission,
  ): Promise<{ kind: 'enqueued' | 'already_there'; job: StoredRandomnessJob }> {
    const { states, contract, oracleKey, clock, wake } = this.#deps;
    const { requestId, prizeXlm, priority, source } = submission;
    // An event may number its raffle all the same; where each is a contract, the number means nothing to us.
    const isNumbered = contract.interfaceName === 'receive_randomness' || source !== 'event';
    const raffleId = isNumbered ? submission.raffleId : null;
    const contractId = this.#contractOf(submission);
    const raffleJob = { contractId, contractRequestId: requestId, raffleId };
    const problem = this.problemOf(raffleJob);
    if (problem !== null) throw invalidInput([problem]);
    const key = contract.jobKey(raffleJob);
    const identity = this.identityOf(contractId, requestId);
    if (source !== 'event') await this.#assertFree(identity, key);
    const result = await states.initializeJob({
      key,
      requestId: identity,
      ...raffleJob,
      source,
      prizeXlm: prizeXlm ?? null,
      priorityLevel: this.priorityFor({ prizeXlm, priority }),
      requestedAt: submission.requestedAt ?? new Date(clock.now()),
      requestedAtLedger: submission.requestedAtLedger ?? null,
      oracleKey: oracleKey(),
    });
    if (result.kind === 'enqueued') wake();
    return result;
  }

  priorityFor({ prizeXlm, priority }: Pick<Submission, 'prizeXlm' | 'priority'>): PriorityLevel {
    return priorityOf({ prizeXlm, flag: priority }, this.#deps.thresholds);
  }

  /** What is wrong with a request; null when nothing is. */
  problemOf(raffleJob: RaffleJob): FieldProblem | null {
    const { contract, generator } = this.#deps;
    const { contractId, contractRequestId: requestId, raffleId } = raffleJob;
    return (
      contract.problemOf(raffleJob) ??
      generator.problemOf({ requestId, raffleId }) ??
      this.#foreignContract(contractId)
    );
  }

  /** The job that an event of `contractId` is about. */
  findOf({
    contractId,
    requestId,
    raffleId,
  }: Pick<Submission, 'requestId' | 'raffleId'> & {
    contractId: string;
  }): Promise<StoredRandomnessJob | null> {
    const { contract, jobs } = this.#deps;
    const raffleJob = { contractId, contractRequestId: requestId, raffleId };
    return contract.problemOf(raffleJob) === null
      ? jobs.findByKey(contract.jobKey(raffleJob))
      : jobs.find(this.identityOf(contractId, requestId));
  }

  /** Requests of one contract are told apart by their id; those of many by both. */
  identityOf(contractId: string, requestId: string): string {
    return this.#deps.contract.interfaceName === 'receive_randomness'
      ? requestId
      : `${contractId}:${requestId}`;
  }

  async find(requestId: string): Promise<RequestView> {
    const job = await this.#deps.jobs.find(requestId);
    if (job === null) throw notFound(`randomness request ${requestId}`);
    return requestView(job);
  }

  /**
   * The raffle's number is part of what was signed: one that isn't given is looked up, never left out. A reveal is judged
   * by the commitment that is known here, else by the raffle's own on chain; the caller's counts where there is neither,
   * and makes the claim false where it is another.
   * @throws HttpProblem 400 where the number can't be had, 503 where the chain can't be asked for the commitment.
   */
  async verify(query: VerifyQuery): Promise<VerifyAnswer> {
    const job = await this.#deps.jobs.find(query.requestId);
    const hasNumbers = this.#deps.contract.interfaceName === 'receive_randomness';
    const numberHere = hasNumbers ? job?.raffleId : null;
    const raffleId = query.raffleId === undefined ? numberHere : query.raffleId;
    if (raffleId === undefined) {
      throw invalidInput([
        { field: 'raffleId', problem: 'is required for a request that is not known here' },
      ]);
    }
    const contractId = query.contractId ?? job?.contractId ?? this.#contractOf({});
    const requestId = job?.contractRequestId ?? query.requestId;
    const claim = {
      contractId,
      requestId,
      raffleId,
      proof: query.proof,
      ...(query.seed === undefined ? {} : { seed: query.seed }),
      ...(query.publicKey === undefined ? {} : { publicKey: query.publicKey }),
    };
    if (query.proof.length !== 2 * OPENING_BYTES) return this.#deps.generator.verify(claim);
    const { commitment, commitmentFrom } = await this.#committed(
      { contractId, contractRequestId: requestId, raffleId },
      query.commitment,
    );
    if (query.commitment !== undefined && query.commitment !== commitment) {
      return { valid: false, commitmentFrom };
    }
    const verdict = await this.#deps.generator.verify({
      ...claim,
      ...(commitment === undefined ? {} : { commitment }),
    });
    return { ...verdict, commitmentFrom };
  }

  #contractOf({ contractId }: { contractId?: string }): string {
    const known = contractId ?? this.#deps.contractId;
    if (known !== null) return known;
    throw invalidInput([
      { field: 'contractId', problem: 'is required: each raffle is a contract of its own here' },
    ]);
  }

  /** A seed for a like-numbered raffle of another contract would be this one's seed, told before its draw. */
  #foreignContract(contractId: string): FieldProblem | null {
    const { contract, contractId: configured } = this.#deps;
    return contract.interfaceName === 'receive_randomness' && contractId !== configured
      ? { field: 'contractId', problem: `expected the configured one, ${configured}` }
      : null;
  }

  async #assertFree(identity: string, key: string): Promise<void> {
    const taken = await this.#deps.jobs.find(identity);
    if (taken === null || taken.key === key) return;
    const { contractId, raffleId } = taken;
    throw new HttpProblem(
      409,
      'REQUEST_ID_TAKEN',
      `request ${identity} is there already, for raffle ${String(raffleId)} of ${contractId}`,
    );
  }

  async #committed(
    job: RaffleJob,
    claimed: string | undefined,
  ): Promise<{ commitment: string | undefined; commitmentFrom: CommitmentSource }> {
    const here =
      job.raffleId === null ? null : await this.#deps.commitments.find(job.contractId, job.raffleId);
    if (here !== null) return { commitment: here.commitment, commitmentFrom: 'here' };
    const onChain = await this.#committedOnChain(job);
    if (onChain !== null) return { commitment: onChain, commitmentFrom: 'chain' };
    return { commitment: claimed, commitmentFrom: claimed === undefined ? null : 'caller' };
  }

  async #committedOnChain(job: RaffleJob): Promise<string | null> {
    const signal = AbortSignal.timeout(CHAIN_TIMEOUT_MS);
    try {
      return (await this.#deps.contract.view(job, signal)).commitment;
    } catch (error) {
      if (!(error instanceof TransientError) && !signal.aborted) return null;
      throw new HttpProblem(
        503,
        'NETWORK_UNAVAILABLE',
        'The network could not be asked what was committed to; try again shortly',
      );
    }
  }
}
