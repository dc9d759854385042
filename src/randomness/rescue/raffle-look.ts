import { describeFailure } from '../../platform/errors';
import type { Logger } from '../../platform/logger';
import type { RaffleContract, RaffleJob, RaffleStatus, RaffleView } from '../contracts/raffle-contract';

/** What could be learnt of a raffle just now. A rescue must stay possible when that is nothing. */
export type RaffleLook =
  | { kind: 'seen'; view: RaffleView }
  /** The contract answered, and shows no such raffle. */
  | { kind: 'absent'; problem: string }
  | { kind: 'unreachable'; problem: string };

export type LookAtRaffle = (job: RaffleJob) => Promise<RaffleLook>;

const READ_TIMEOUT_MS = 15_000;

export const raffleLook =
  (contract: RaffleContract, logger: Logger): LookAtRaffle =>
  async (job) => {
    try {
      return { kind: 'seen', view: await contract.view(job, AbortSignal.timeout(READ_TIMEOUT_MS)) };
    } catch (error) {
      const { message, retryable } = describeFailure(error);
      logger.info({ err: error, raffleId: job.raffleId }, 'the raffle could not be read');
      return { kind: retryable ? 'unreachable' : 'absent', problem: message };
    }
  };

export const statusOf = (look: RaffleLook): RaffleStatus | 'unknown' =>
  look.kind === 'seen' ? look.view.status : 'unknown';

/** Nothing is left to deliver; null while there may be. */
export function overStatus(look: RaffleLook): 'finalized' | 'cancelled' | null {
  const status = statusOf(look);
  return status === 'finalized' || status === 'cancelled' ? status : null;
}
