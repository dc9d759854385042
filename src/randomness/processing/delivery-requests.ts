import type { IntentId, SubmissionRequest } from '../../stellar/submission';
import { type RaffleContract, raffleOverCodes } from '../contracts/raffle-contract';
import { unlessAborted } from './phase-deadline';
import type { RandomnessGenerator } from '../seeds/randomness-generator';
import type { StoredRandomness, StoredRandomnessJob } from '../jobs/randomness-job.model';

export interface DeliveryRequestsDeps {
  contract: RaffleContract;
  generator: RandomnessGenerator;
}

/** The one transaction that a job wants, as the submitter has to be asked for it: by workers, rescue and post-mortem alike. */
export class DeliveryRequests {
  readonly #deps: DeliveryRequestsDeps;

  constructor(deps: DeliveryRequestsDeps) {
    this.#deps = deps;
  }

  /** @param epoch of the claim in whose name it is asked */
  async of(job: StoredRandomnessJob, epoch: number, signal: AbortSignal): Promise<SubmissionRequest> {
    const { contract, generator } = this.#deps;
    const randomness = madeBy(job);
    const signer = generator.signerFor(randomness);
    return {
      intent: `randomness:${job.key}` as IntentId,
      epoch,
      call: await unlessAborted(contract.deliveryCall(job, randomness, signer), signal),
      ...(job.requestedAtLedger === null ? {} : { minLedger: job.requestedAtLedger }),
      feeClass: job.urgent ? 'urgent' : 'standard',
      alreadyDoneCodes: raffleOverCodes,
      findEvidence: async (aborts) => {
        const view = await contract.view(job, aborts);
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

/** @throws TypeError for a job that has made nothing yet. */
export function madeBy({ randomness }: Pick<StoredRandomnessJob, 'randomness'>): StoredRandomness {
  if (randomness === null) throw new TypeError('a job in submitting has randomness');
  return randomness;
}
