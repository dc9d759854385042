import type { FieldProblem } from '../../platform/problem';
import type { ContractCall } from '../../stellar/contract-value';
import type { Signer } from '../../stellar/keys';
import type { RandomnessJob, StoredRandomness } from '../jobs/randomness-job.model';

export type RaffleStatus = 'open' | 'drawing' | 'finalized' | 'cancelled';

/** A raffle as its contract shows it. */
export interface RaffleView {
  status: RaffleStatus;
  prizeXlm: number | null;
  /** The seed it was given, in the form of {@link RaffleContract.seedOnChain}; null where it has none or doesn't tell. */
  deliveredSeed: string | null;
  /** 64 hex digits; null where there is none, or the interface knows none. */
  commitment: string | null;
}

/** How the contract's refusal of a delivery is to be read. */
export type RefusalMeaning =
  /** Someone delivered, or it was cancelled: the raffle itself says which. */
  | 'over'
  /** It will take it later. */
  | 'too_early'
  /** It never will. */
  | 'permanent';

export type RaffleJob = Pick<RandomnessJob, 'contractId' | 'contractRequestId' | 'raffleId'> &
  /** A node that is behind the request knows nothing of it yet, and isn't believed. */
  Partial<Pick<RandomnessJob, 'requestedAtLedger'>>;

/** RandomnessAlreadyRequested, NoRandomnessRequest, InvalidStatus, DrawingAlreadyComplete: the raffle itself tells which. */
export const raffleOverCodes = [7, 8, 23, 61] as const;
/** NotAuthorized, InvalidParameters: the proof, or the key that made it, is not what the contract knows. */
export const keyRefusedCodes = [5, 21] as const;
/** RandomnessTooEarly. */
const tooEarlyCode = 64;

export function meaningOfRefusal(contractCode: number | undefined): RefusalMeaning {
  if (contractCode === tooEarlyCode) return 'too_early';
  return raffleOverCodes.some((code) => code === contractCode) ? 'over' : 'permanent';
}

export type InterfaceCheck =
  | { kind: 'present' }
  /** The contract lacks the function. */
  | { kind: 'absent'; problem: string }
  /** There is no contract of that id on this network. */
  | { kind: 'no_contract'; problem: string };

/** One contract interface to deliver randomness through. */
export interface RaffleContract {
  readonly interfaceName: 'receive_randomness' | 'provide_randomness';
  /**
   * Names the job of a request for good: two requests that differ in anything that is signed or delivered are two jobs,
   * and a contract that replaces another starts anew.
   */
  jobKey(job: RaffleJob): string;
  /** What is wrong with a request for this interface; null when nothing is. */
  problemOf(job: RaffleJob): FieldProblem | null;
  /** @throws TransientError when the network can't be asked, PermanentError for an answer that makes no sense. */
  view(job: RaffleJob, signal: AbortSignal): Promise<RaffleView>;
  deliveryCall(job: RaffleJob, randomness: StoredRandomness, signer: Signer): Promise<ContractCall>;
  /** What the contract keeps of this randomness. */
  seedOnChain(randomness: StoredRandomness): string;
  /** Whether the contract has the function that delivers, by simulation. */
  checkInterface(contractId: string, signal: AbortSignal): Promise<InterfaceCheck>;
}
