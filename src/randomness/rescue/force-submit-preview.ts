import { describeFailure, RejectedError } from '../../platform/errors';
import type { FeeClass, FeeEstimator } from '../../stellar/submission';
import { contractCodeOf } from '../contracts/contract-answers';
import type { RaffleContract, RaffleStatus } from '../contracts/raffle-contract';
import { explained } from '../contracts/refusal-names';
import type { RandomnessGenerator, RandomnessSeeker } from '../seeds/randomness-generator';
import type { RandomnessProcessorService } from '../processing/randomness-processor.service';
import type { StoredRandomnessJob } from '../jobs/randomness-job.model';
import type { ForceSubmitTarget, ForceSubmitTargets } from './force-submit-target';
import { type RaffleLook, statusOf } from './raffle-look';

/** What a forced submission would do. */
export interface ForceSubmitPlan {
  requestId: string;
  raffleId: number | null;
  jobId: string | null;
  state: string | null;
  phase: string | null;
  contractId: string;
  contractStatus: RaffleStatus | 'unknown';
  prizeXlm: number | null;
  method: string;
  /** G… of the key that proves the randomness. */
  proofKey: string;
  /** G… of the oracle account: the contract asks for its authority. */
  sourceAccount: string;
  feeClass: FeeClass;
  /** Whole stroops in text; null where the delivery can't be simulated, for `feeProblem`. */
  feeEstimateStroops: string | null;
  feeProblem: string | null;
  /** Why it would not be done. */
  refusal: string | null;
}

export interface ForceSubmitPreviewDeps {
  contract: RaffleContract;
  generator: RandomnessGenerator;
  processor: Pick<RandomnessProcessorService, 'randomnessFor'>;
  feeEstimator: FeeEstimator;
  targets: ForceSubmitTargets;
  /** G… of the account that transactions act for. */
  sourceAccount: string;
}

const ESTIMATE_TIMEOUT_MS = 15_000;

/** Simulates the very delivery that a forced submission would send. Its seed stays in here. */
export class ForceSubmitPreview {
  constructor(private readonly deps: ForceSubmitPreviewDeps) {}

  async plan(target: ForceSubmitTarget): Promise<ForceSubmitPlan> {
    const { generator, sourceAccount, targets } = this.deps;
    const { requestId, asked, known, prizeXlm } = target;
    const { look, refusal } = await targets.judge(target);
    const seeker: RandomnessSeeker = known ?? {
      ...asked,
      prizeXlm,
      oracleKey: generator.publicKey().address,
    };
    const shown = look.kind === 'seen' ? look.view.prizeXlm : null;
    const prize = shown ?? prizeXlm ?? seeker.prizeXlm;
    // Forced, it is urgent whatever the raffle.
    const feeClass: FeeClass = 'urgent';
    return {
      requestId,
      raffleId: seeker.raffleId,
      jobId: known?._id.toHexString() ?? null,
      state: known?.currentState ?? null,
      phase: known?.phase ?? null,
      contractId: seeker.contractId,
      contractStatus: statusOf(look),
      prizeXlm: prize,
      proofKey: generator.signerFor(known?.randomness ?? seeker).publicKey,
      sourceAccount,
      feeClass,
      ...(await this.#delivery(seeker, known, look, { prize, feeClass })),
      refusal,
    };
  }

  async #delivery(
    seeker: RandomnessSeeker,
    known: StoredRandomnessJob | null,
    look: RaffleLook,
    { prize, feeClass }: { prize: number | null; feeClass: FeeClass },
  ): Promise<Pick<ForceSubmitPlan, 'method' | 'feeEstimateStroops' | 'feeProblem'>> {
    const { contract, feeEstimator, generator, processor } = this.deps;
    const stored = known?.randomness ?? null;
    // Before its draw a raffle's seed is for nobody to know, a node that simulates its delivery included.
    if (look.kind !== 'seen' || look.view.status !== 'drawing') {
      const method = stored?.method ?? generator.methodFor(prize);
      const feeProblem = look.kind === 'seen' ? `the raffle is ${look.view.status}` : look.problem;
      return { method, feeEstimateStroops: null, feeProblem };
    }
    const randomness = stored ?? (await processor.randomnessFor(seeker, look.view));
    const { method } = randomness;
    try {
      const call = await contract.deliveryCall(seeker, randomness, generator.signerFor(randomness));
      const signal = AbortSignal.timeout(ESTIMATE_TIMEOUT_MS);
      const { inclusionStroops, resourceStroops } = await feeEstimator.estimate(call, feeClass, signal);
      return { method, feeEstimateStroops: String(inclusionStroops + resourceStroops), feeProblem: null };
    } catch (error) {
      const contractCode = error instanceof RejectedError ? contractCodeOf(error) : undefined;
      const feeProblem = explained(describeFailure(error).message, contractCode);
      return { method, feeEstimateStroops: null, feeProblem };
    }
  }
}
