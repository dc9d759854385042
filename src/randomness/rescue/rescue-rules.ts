import type { RaffleJob } from '../contracts/raffle-contract';
import type { StoredRandomnessJob } from '../jobs/randomness-job.model';
import { randomnessLifecycle } from '../jobs/randomness-lifecycle';
import { overStatus, type RaffleLook } from './raffle-look';

/** What an operator may do to a job that is there. */
export type JobAction = 're_enqueue' | 'force_fail' | 'discard';

export interface Circumstances {
  look: RaffleLook;
  /** Nothing is sent for the request any more: its raffle is left to its contract's fallback. */
  isTooLate: boolean;
}

/** Why it would be wrong to do it; null where it wouldn't. The same for a preview and for the deed. */
export function refusalOf(
  action: JobAction,
  job: StoredRandomnessJob,
  { look, isTooLate }: Circumstances,
): string | null {
  switch (action) {
    case 're_enqueue':
      if (job.phase !== 'dead') return notDead(job, 're-enqueue');
      return refusalIfUndecided(job) ?? refusalIfOver(job, look);
    case 'force_fail':
      if (randomnessLifecycle.isTerminal(job.currentState)) return `the job is ${job.currentState} already`;
      return job.phase === 'leased' ? heldBy(job) : refusalIfUndecided(job);
    case 'discard':
      if (job.phase !== 'dead') return notDead(job, 'discard');
      return refusalIfUndecided(job) ?? refusalToDiscard(job, { look, isTooLate });
  }
}

/** For whatever would deliver. A dead job has a way out even then. */
export function refusalIfOver(job: StoredRandomnessJob | null, look: RaffleLook): string | null {
  const status = overStatus(look);
  if (status === null) return null;
  return job?.phase === 'dead'
    ? `the raffle is ${status}, so nothing is left to deliver; "discard ${job.requestId}" clears the dead letter`
    : `the raffle is ${status}`;
}

/** It died with its delivery on the way. Until that has ended nobody knows what there is to do. */
export const refusalIfUndecided = (job: StoredRandomnessJob): string | null =>
  job.phase === 'dead' && job.txHash !== null && !randomnessLifecycle.isTerminal(job.currentState)
    ? `its transaction ${job.txHash} may still land: look again shortly`
    : null;

/** A request is known under one raffle of one contract; another one in the command is a slip of the pen. */
export function refusalIfAnother(known: StoredRandomnessJob, asked: RaffleJob): string | null {
  if (known.contractId !== asked.contractId) {
    return `request ${asked.contractRequestId} is known of contract ${known.contractId}: name it ${known.contractId}:${asked.contractRequestId}`;
  }
  if (asked.raffleId === null || asked.raffleId === known.raffleId) return null;
  return known.raffleId === null
    ? `the raffle of request ${known.requestId} is its contract, which numbers none: give "-" for the raffle, not ${asked.raffleId}`
    : `request ${known.requestId} is of raffle ${known.raffleId}, not ${asked.raffleId}`;
}

export const heldBy = (job: StoredRandomnessJob | null): string =>
  `worker ${job?.lease?.workerId ?? 'unknown'} holds the job right now: look again shortly`;

const notDead = (job: StoredRandomnessJob, verb: string): string =>
  `the job is ${job.currentState}, not dead: there is nothing to ${verb}`;

/** A raffle that waits and can be served must not lose its job, nor one of which nobody can say that it needs none. */
function refusalToDiscard(job: StoredRandomnessJob, { look, isTooLate }: Circumstances): string | null {
  if (look.kind === 'unreachable')
    return 'the raffle can’t be asked just now, and it may still wait for its randomness';
  if (look.kind === 'absent' || overStatus(look) !== null || isTooLate) return null;
  return `the raffle still waits for its randomness; "re-enqueue ${job.requestId}" gives it another try`;
}
