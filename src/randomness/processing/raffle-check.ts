import type { Clock } from '../../platform/clock';
import type { JobOutcome } from '../../worker/job-handler';
import type { AuditTrail } from '../audit/audit-trail';
import type { CommitmentOpening } from '../seeds/commit-reveal';
import type { Commitments } from '../seeds/commitments.repository';
import type { RaffleContract, RaffleView } from '../contracts/raffle-contract';
import type { Delivery, Endings } from './job-endings';
import type { HeldJob } from '../jobs/job-state-manager';
import { unlessAborted } from './phase-deadline';
import type { RandomnessGenerator } from '../seeds/randomness-generator';
import type { RandomnessJob, StoredRandomness, StoredRandomnessJob } from '../jobs/randomness-job.model';

export interface RaffleCheckDeps {
  contract: RaffleContract;
  generator: RandomnessGenerator;
  commitments: Commitments;
  audit: AuditTrail;
  endings: Endings;
  /** Sequence of the newest closed ledger. */
  latestLedger: (signal: AbortSignal) => Promise<number>;
  /** Ledgers after its request from which nothing is sent any more; 0 for no limit. */
  requestTimeoutLedgers: number;
  clock: Clock;
}

type Ending = JobOutcome<RandomnessJob>;

/** A raffle that is asked for long before its draw is looked at ever more seldom; its own request hastens the job. */
const FIRST_RECHECK_MS = 5_000;
const LAST_RECHECK_MS = 60_000;
const RECHECKS_PER_AGE = 10;

/** Whether a raffle still wants what a job has to give; and where it has a seed, whose it is. */
export class RaffleCheck {
  readonly #deps: RaffleCheckDeps;

  constructor(deps: RaffleCheckDeps) {
    this.#deps = deps;
  }

  /** How the job ends if the raffle needs nothing of it, or may not be given anything any more; null while it waits for us. */
  async endingOf(held: HeldJob, view: RaffleView, signal: AbortSignal): Promise<Ending | null> {
    const { endings, clock } = this.#deps;
    const ending =
      (await this.endingIfOver(held, view, signal)) ?? (await this.endingIfTooLate(held, signal));
    if (ending !== null || view.status === 'drawing') return ending;
    // Tickets are still for sale: a seed that is sent or simulated now is a seed that is known before the draw.
    const ageMs = clock.now() - held.job.requestedAt.getTime();
    const delayMs = Math.min(Math.max(ageMs / RECHECKS_PER_AGE, FIRST_RECHECK_MS), LAST_RECHECK_MS);
    return endings.setAside(held, 'the raffle is not being drawn yet', delayMs);
  }

  /** @param delivery where our seed got there, as far as the caller knows better than the job */
  async endingIfOver(
    held: HeldJob,
    view: RaffleView,
    signal: AbortSignal,
    delivery: Omit<Delivery, 'randomness'> = { txHash: held.job.txHash, ledger: null },
  ): Promise<Ending | null> {
    const { endings } = this.#deps;
    if (view.status === 'cancelled')
      return endings.over(held, 'RAFFLE_CANCELLED', 'Raffle already cancelled');
    if (view.status !== 'finalized') return null;
    const randomness = await this.ourRandomness(held.job, view, signal);
    return randomness === null
      ? endings.over(held, 'RAFFLE_FINALIZED', 'Raffle already finalized')
      : endings.confirmed(held, { randomness, ...delivery });
  }

  async endingIfTooLate(held: HeldJob, signal: AbortSignal): Promise<Ending | null> {
    const { endings, requestTimeoutLedgers, latestLedger } = this.#deps;
    const { requestedAtLedger } = held.job;
    if (requestTimeoutLedgers === 0 || requestedAtLedger === null) return null;
    const lastLedger = requestedAtLedger + requestTimeoutLedgers;
    return (await latestLedger(signal)) < lastLedger ? null : endings.tooLate(held, lastLedger);
  }

  /** The randomness that the raffle was given, if it is the one this job makes. */
  async ourRandomness(
    job: StoredRandomnessJob,
    { deliveredSeed }: Pick<RaffleView, 'deliveredSeed'>,
    signal: AbortSignal,
  ): Promise<StoredRandomness | null> {
    if (deliveredSeed === null) return null;
    const { contract, audit } = this.#deps;
    const isThere = (made: StoredRandomness): boolean => contract.seedOnChain(made) === deliveredSeed;
    if (job.randomness !== null && isThere(job.randomness)) return job.randomness;
    const candidates = await unlessAborted(this.#candidates(job), signal);
    const made = candidates.find(isThere);
    if (made !== undefined) return made;
    // A job that was read anew long after it ended: the key that made it may be retired, the record of it is kept.
    const revealed = await audit.revealedOf(job.key);
    return revealed !== null && isThere(revealed) ? revealed : null;
  }

  /** Our opening of the commitment that the raffle holds; null where it holds none of ours. */
  async heldOpening(
    { contractId, raffleId }: Pick<RandomnessJob, 'contractId' | 'raffleId'>,
    { commitment }: Pick<RaffleView, 'commitment'>,
  ): Promise<{ opening: CommitmentOpening; raffleId: number } | null> {
    if (commitment === null || raffleId === null) return null;
    const opening = await this.#deps.commitments.find(contractId, raffleId);
    return opening?.commitment === commitment ? { opening, raffleId } : null;
  }

  /** All that this job could have made, by any key in use: the process that made it may have died before it stored it. */
  async #candidates(job: RandomnessJob): Promise<StoredRandomness[]> {
    const { generator, commitments } = this.#deps;
    const subjects = generator.activeKeys.map((oracleKey) => ({ ...job, oracleKey }));
    const made = await Promise.all(
      subjects.flatMap((subject) => [
        generator.generate(subject, 'VRF'),
        generator.generate(subject, 'PRNG'),
      ]),
    );
    const opening = job.raffleId === null ? null : await commitments.find(job.contractId, job.raffleId);
    return opening === null || job.raffleId === null
      ? made
      : [...made, generator.reveal(job, opening, job.raffleId)];
  }
}
