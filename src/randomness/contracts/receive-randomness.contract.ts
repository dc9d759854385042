import { PermanentError } from '../../platform/errors';
import type { FieldProblem } from '../../platform/problem';
import { contractValue, type ContractCall, type ContractValue } from '../../stellar/contract-value';
import type { ContractReader } from '../../stellar/submission';
import { stroopsToXlm } from '../priority';
import type { StoredRandomness } from '../randomness-job.model';
import { PROOF_BYTES, SEED_BYTES } from '../seed-proof';
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

  problemOf({ raffleId }: RaffleJob): FieldProblem | null {
    return raffleId === null
      ? { field: 'raffleId', problem: 'is needed: this contract numbers its raffles' }
      : null;
  }

  async view(job: RaffleJob, signal: AbortSignal): Promise<RaffleView> {
    const answer = await this.reader.read(
      { contractId: job.contractId, functionName: 'get_raffle_data', args: [raffleArgument(job)] },
      signal,
    );
    const fields = structFields(answer, 'get_raffle_data');
    const name = nameOf(fields.get('status'));
    const status = name === null ? undefined : statuses[name.toUpperCase()];
    if (status === undefined) throw unexpected('get_raffle_data', 'no status that is known');
    const prize = wholeNumber(fields.get('prize_amount'));
    const seed = fields.get('seed');
    return {
      status,
      prizeXlm: prize === null ? null : stroopsToXlm(prize),
      deliveredSeed: seed?.type === 'bytes' ? Buffer.from(seed.value).toString('hex') : null,
    };
  }

  deliveryCall(job: RaffleJob, { seed, proof }: StoredRandomness): Promise<ContractCall> {
    return Promise.resolve(
      receiveRandomness(
        job.contractId,
        raffleArgument(job),
        Buffer.from(seed, 'hex'),
        Buffer.from(proof, 'hex'),
      ),
    );
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

function raffleArgument({ raffleId }: RaffleJob): ContractValue {
  if (raffleId === null) throw new PermanentError('MALFORMED_REQUEST', 'this contract numbers its raffles');
  return contractValue.u32(raffleId);
}
