import { type ClaimScope } from '../../queue/claim-scope';
import { MongoWorkerQueue, type MongoWorkerQueueOptions } from '../../queue/mongo-worker-queue';
import type { Claimant, ClaimResult } from '../../queue/worker-queue';
import type { ProcessingSlots } from '../processing/processing-slots';
import { urgentIndex, type RandomnessJob } from './randomness-job.model';

const urgentOnly: ClaimScope = { filter: { urgent: true }, index: urgentIndex };

/** Claims nothing that there is no slot for: what can't be worked on stays where it is, untouched and in order. */
export class RandomnessQueue extends MongoWorkerQueue<RandomnessJob> {
  readonly #slots: ProcessingSlots;

  constructor(options: MongoWorkerQueueOptions, slots: ProcessingSlots) {
    super(options);
    this.#slots = slots;
  }

  override async claim(claimant: Claimant, scope?: ClaimScope): Promise<ClaimResult<RandomnessJob>> {
    if (scope !== undefined) return super.claim(claimant, scope);
    if (this.#slots.canAcquire(false)) return super.claim(claimant);
    return this.#slots.canAcquire(true) ? super.claim(claimant, urgentOnly) : { kind: 'empty' };
  }
}
