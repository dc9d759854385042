import { PermanentError } from '../../platform/errors';
import type { FieldProblem } from '../../platform/problem';
import { contractValue, type ContractCall, type ContractValue } from '../../stellar/contract-value';
import type { ContractReader } from '../../stellar/submission';
import { COMMIT_SECRET_BYTES } from '../seeds/commit-reveal';
import { stroopsToXlm } from '../jobs/priority';
import type { StoredRandomness } from '../jobs/randomness-job.model';
import { PROOF_BYTES, SEED_BYTES } from '../seeds/seed-proof';
import { hasFunction, nameOf, structFields, unexpected, wholeNumber } from './contract-answers';
import type { InterfaceCheck, RaffleContract, RaffleJob, RaffleStatus, RaffleView } from './raffle-contract';

const statuses: Readonly<Record<string, RaffleStatus>> = {
  OPEN: 'open',
  DRAWING: 'drawing',
  FINALIZED: 'finalized',
  CANCELLED: 'cancelled',
};

/** One contract holds many raffles, by number: `receive_randomness(raffle_id u32, seed bytes32, proof bytes64)`. */
export class ReceiveRandomnessContract implements RaffleContract {
  readonly interfaceName = 'receive_randomness';

  constructor(private readonly reader: ContractReader) {}

  jobKey({ contractId, raffleId, contractRequestId }: RaffleJob): string {
    return `${contractId}:${String(raffleId)}:${contractRequestId}`;
  }

  problemOf({ raffleId }: RaffleJob): FieldProblem | null {
    return raffleId === null
      ? { field: 'raffleId', problem: 'is needed: this contract numbers its raffles' }
      : null;
  }

  async view(job: RaffleJob, signal: AbortSignal): Promise<RaffleView> {
    const answer = await this.reader.read(
      { contractId: job.contractId, functionName: 'get_raffle_data', args: [raffleArgument(job)] },
      signal,
      job.requestedAtLedger ?? undefined,
    );
    const fields = structFields(answer, 'get_raffle_data');
    const name = nameOf(fields.get('status'));
    const status = name === null ? undefined : statuses[name.toUpperCase()];
    if (status === undefined) throw unexpected('get_raffle_data', 'no status that is known');
    const prize = wholeNumber(fields.get('prize_amount'));
    return {
      status,
      prizeXlm: prize === null ? null : stroopsToXlm(prize),
      deliveredSeed: hexOf(fields.get('seed')),
      commitment: hexOf(fields.get('commitment')),
    };
  }

  deliveryCall(job: RaffleJob, { method, seed, proof }: StoredRandomness): Promise<ContractCall> {
    const proofBytes = Buffer.from(proof, 'hex');
    return Promise.resolve(
      method === 'COMMIT_REVEAL'
        ? {
            contractId: job.contractId,
            functionName: 'reveal_randomness',
            args: [
              raffleArgument(job),
              contractValue.bytes(proofBytes.subarray(0, COMMIT_SECRET_BYTES)),
              contractValue.bytes(proofBytes.subarray(COMMIT_SECRET_BYTES)),
            ],
          }
        : receiveRandomness(job.contractId, raffleArgument(job), Buffer.from(seed, 'hex'), proofBytes),
    );
  }

  /** @param commitment 64 hex digits */
  commitCall(job: RaffleJob, commitment: string): ContractCall {
    return {
      contractId: job.contractId,
      functionName: 'commit_randomness',
      args: [raffleArgument(job), contractValue.bytes(Buffer.from(commitment, 'hex'))],
    };
  }

  seedOnChain({ seed }: StoredRandomness): string {
    return seed;
  }

  checkInterface(contractId: string, signal: AbortSignal): Promise<InterfaceCheck> {
    const call = receiveRandomness(
      contractId,
      contractValue.u32(0),
      Buffer.alloc(SEED_BYTES),
      Buffer.alloc(PROOF_BYTES),
    );
    return hasFunction(this.reader, call, signal);
  }
}

const receiveRandomness = (
  contractId: string,
  raffleId: ContractValue,
  seed: Uint8Array,
  proof: Uint8Array,
): ContractCall => ({
  contractId,
  functionName: 'receive_randomness',
  args: [raffleId, contractValue.bytes(seed), contractValue.bytes(proof)],
});

const hexOf = (value: ContractValue | undefined): string | null =>
  value?.type === 'bytes' ? Buffer.from(value.value).toString('hex') : null;

function raffleArgument({ raffleId }: RaffleJob): ContractValue {
  if (raffleId === null) throw new PermanentError('MALFORMED_REQUEST', 'this contract numbers its raffles');
  return contractValue.u32(raffleId);
}
