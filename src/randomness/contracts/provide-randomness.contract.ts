import { PermanentError } from '../../platform/errors';
import { shown } from '../../platform/input-wording';
import type { FieldProblem } from '../../platform/problem';
import { contractValue, type ContractCall, type ContractValue } from '../../stellar/contract-value';
import { rawPublicKey, type Signer } from '../../stellar/keys';
import { contractValueBytes } from '../../stellar/scval-codec';
import type { ContractReader } from '../../stellar/submission';
import { stroopsToXlm } from '../jobs/priority';
import type { StoredRandomness } from '../jobs/randomness-job.model';
import { PROOF_BYTES, seedAsU64 } from '../seeds/seed-proof';
import { hasFunction, nameOf, structFields, unexpected, wholeNumber } from './contract-answers';
import type { InterfaceCheck, RaffleContract, RaffleJob, RaffleStatus, RaffleView } from './raffle-contract';

/** Active 0, Drawing 1, Finalized 2, Cancelled 3, Failed 4, Claimed 5, PendingPrize 6. */
const statusByNumber: readonly RaffleStatus[] = [
  'open',
  'drawing',
  'finalized',
  'cancelled',
  'cancelled',
  'finalized',
  'open',
];
const statusByName: Readonly<Record<string, RaffleStatus>> = {
  Active: 'open',
  Drawing: 'drawing',
  Finalized: 'finalized',
  Cancelled: 'cancelled',
  Failed: 'cancelled',
  Claimed: 'finalized',
  PendingPrize: 'open',
};

const MAX_U64 = 2n ** 64n - 1n;

/**
 * Each raffle is a contract: `provide_randomness(random_seed u64, public_key bytes32, proof bytes64, request_id u64)`. The
 * seed is the head of ours; the proof that the contract checks signs the XDR vector [Address(contract), U64(request_id),
 * U64(random_seed)]. Such a signature alone proves no randomness (the signer could pick the seed), which is why the
 * 32-byte seed with its own proof is kept in the audit trail.
 */
export class ProvideRandomnessContract implements RaffleContract {
  readonly interfaceName = 'provide_randomness';

  constructor(private readonly reader: ContractReader) {}

  jobKey({ contractId, contractRequestId }: RaffleJob): string {
    return `${contractId}:${contractRequestId}`;
  }

  problemOf({ contractRequestId, raffleId }: RaffleJob): FieldProblem | null {
    if (parseRequestId(contractRequestId) === null) {
      const form = `a whole number from 0 to ${MAX_U64} without leading zeros`;
      return {
        field: 'requestId',
        problem: `expected ${form}, as this contract counts its requests, not ${shown(contractRequestId)}`,
      };
    }
    return raffleId === null
      ? null
      : {
          field: 'raffleId',
          problem: 'is not taken: each raffle is a contract of its own, given by contractId',
        };
  }

  async view({ contractId, requestedAtLedger }: RaffleJob, signal: AbortSignal): Promise<RaffleView> {
    const minLedger = requestedAtLedger ?? undefined;
    const answer = await this.reader.read(
      { contractId, functionName: 'get_raffle', args: [] },
      signal,
      minLedger,
    );
    const fields = structFields(answer, 'get_raffle');
    const status = readStatus(fields);
    const prize = wholeNumber(fields.get('prize_amount'));
    const prizeXlm = prize === null ? null : stroopsToXlm(prize);
    return {
      status,
      prizeXlm,
      commitment: null,
      deliveredSeed: status === 'finalized' ? await this.#deliveredSeed(contractId, signal) : null,
    };
  }

  async deliveryCall(job: RaffleJob, randomness: StoredRandomness, signer: Signer): Promise<ContractCall> {
    const requestId = requestIdOf(job);
    const seed = seedAsU64(Buffer.from(randomness.seed, 'hex'));
    const message = contractValueBytes(
      contractValue.vec([
        contractValue.address(job.contractId),
        contractValue.u64(requestId),
        contractValue.u64(seed),
      ]),
    );
    return provideRandomness(
      job.contractId,
      seed,
      rawPublicKey(signer.publicKey),
      await signer.sign(message),
      requestId,
    );
  }

  seedOnChain({ seed }: StoredRandomness): string {
    return seedAsU64(Buffer.from(seed, 'hex')).toString();
  }

  checkInterface(contractId: string, signal: AbortSignal): Promise<InterfaceCheck> {
    const call = provideRandomness(contractId, 0n, Buffer.alloc(32), Buffer.alloc(PROOF_BYTES), 0n);
    return hasFunction(this.reader, call, signal);
  }

  async #deliveredSeed(contractId: string, signal: AbortSignal): Promise<string | null> {
    const answer = await this.reader.read(
      { contractId, functionName: 'get_fairness_data', args: [] },
      signal,
    );
    if (answer.type !== 'map') return null;
    const fields = structFields(answer, 'get_fairness_data');
    return wholeNumber(fields.get('random_seed') ?? fields.get('seed'))?.toString() ?? null;
  }
}

const provideRandomness = (
  contractId: string,
  seed: bigint,
  publicKey: Uint8Array,
  proof: Uint8Array,
  requestId: bigint,
): ContractCall => ({
  contractId,
  functionName: 'provide_randomness',
  args: [
    contractValue.u64(seed),
    contractValue.bytes(publicKey),
    contractValue.bytes(proof),
    contractValue.u64(requestId),
  ],
});

function readStatus(fields: ReadonlyMap<string, ContractValue>): RaffleStatus {
  const field = fields.get('status');
  const number = wholeNumber(field);
  const name = nameOf(field);
  const status =
    number !== null ? statusByNumber[Number(number)] : name === null ? undefined : statusByName[name];
  if (status === undefined) throw unexpected('get_raffle', 'no status that is known');
  return status;
}

function requestIdOf({ contractRequestId }: RaffleJob): bigint {
  const id = parseRequestId(contractRequestId);
  if (id === null) throw new PermanentError('MALFORMED_REQUEST', 'this contract counts its requests by u64');
  return id;
}

/** One way to write each: `7` and `007` would be two jobs for one request. */
function parseRequestId(text: string): bigint | null {
  const id = /^(0|[1-9]\d{0,19})$/.test(text) ? BigInt(text) : null;
  return id === null || id > MAX_U64 ? null : id;
}
