import { PermanentError } from '../../platform/errors';
import type { RaffleJob } from '../contracts/raffle-contract';
import type { StoredRandomnessJob } from '../jobs/randomness-job.model';
import type { RandomnessJobs } from '../jobs/randomness-jobs.repository';
import type { RandomnessService } from '../randomness.service';
import { type LookAtRaffle, type RaffleLook, statusOf } from './raffle-look';
import { refusalIfAnother, refusalIfOver, refusalIfUndecided } from './rescue-rules';

export interface ForceSubmitRequest {
  raffleId: number | null;
  /** As the contract counts it; `C…:id` for another contract than the configured one. */
  requestId: string;
  /** Where the raffle can't be asked for it. */
  prizeXlm?: number;
}

/** What a forced submission is about, before anything is done. */
export interface ForceSubmitTarget {
  /** The job's identity, whether or not there is one yet. */
  requestId: string;
  asked: RaffleJob;
  known: StoredRandomnessJob | null;
  prizeXlm: number | null;
}

export interface ForceSubmitTargetsDeps {
  jobs: RandomnessJobs;
  service: RandomnessService;
  /** Of requests that name no contract; null where each has to. */
  contractId: string | null;
  look: LookAtRaffle;
}

const QUALIFIED = /^(C[A-Z2-7]{55}):(.+)$/;

/** Forced submissions may be of requests that never came in: finds what is meant, and judges whether it may be done. */
export class ForceSubmitTargets {
  constructor(private readonly deps: ForceSubmitTargetsDeps) {}

  async find({ requestId: text, raffleId, prizeXlm }: ForceSubmitRequest): Promise<ForceSubmitTarget> {
    const [, named = this.deps.contractId, contractRequestId = text] = QUALIFIED.exec(text) ?? [];
    if (named === null)
      throw new PermanentError('CONTRACT_NEEDED', `which contract's request? Name it C…:${text}`);
    const contractId = named;
    const { jobs, service } = this.deps;
    const requestId = service.identityOf(contractId, contractRequestId);
    return {
      requestId,
      asked: { contractId, contractRequestId, raffleId },
      // A raffle that was given wrong is told by the job that has the request's id.
      known:
        (await service.findOf({ contractId, requestId: contractRequestId, raffleId })) ??
        (await jobs.find(requestId)),
      prizeXlm: prizeXlm ?? null,
    };
  }

  async judge({ asked, known }: ForceSubmitTarget): Promise<{ look: RaffleLook; refusal: string | null }> {
    const look = await this.deps.look(known ?? asked);
    if (known !== null) {
      const refusal =
        refusalIfAnother(known, asked) ?? refusalIfUndecided(known) ?? refusalIfOver(known, look);
      return { look, refusal };
    }
    const problem = this.deps.service.problemOf(asked);
    if (problem !== null) return { look, refusal: `${problem.field}: ${problem.problem}` };
    // A job made for a raffle that isn't there, or has asked for nothing, could only die.
    if (look.kind === 'absent') return { look, refusal: `no such raffle: ${look.problem}` };
    const isWaiting = statusOf(look) !== 'open';
    return {
      look,
      refusal: isWaiting
        ? refusalIfOver(null, look)
        : 'the raffle is open: it has asked for no randomness yet',
    };
  }

  async ensureJob({ asked, known, prizeXlm }: ForceSubmitTarget): Promise<StoredRandomnessJob> {
    if (known !== null) return known;
    const { job } = await this.deps.service.ensureJob({
      requestId: asked.contractRequestId,
      contractId: asked.contractId,
      raffleId: asked.raffleId,
      source: 'operator',
      priority: 'critical',
      ...(prizeXlm === null ? {} : { prizeXlm }),
    });
    return job;
  }
}
