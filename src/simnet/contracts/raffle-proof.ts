import { createHash } from 'node:crypto';
import { verifyEd25519 } from '../ed25519';

/** A delivery as the raffle contract received it, and what it knows of the raffle. */
export interface ProofClaim {
  networkId: Buffer;
  contractId: string;
  requestId: string;
  raffleId: number;
  seed: Buffer;
  proof: Buffer;
  /** Raw Ed25519 key that is registered for the oracle. */
  oracleKey: Buffer;
  prizeStroops: bigint;
}

export type RandomnessMethod = 'vrf' | 'prng';

/** Which method a proof is good for; undefined when it is good for none. */
export type VerifyProof = (claim: ProofClaim) => RandomnessMethod | undefined;

/** Raffles from this prize on take nothing but a signature: 500 XLM. */
export const vrfThresholdStroops = 5_000_000_000n;

const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};

const lengthPrefixed = (text: string): Buffer => {
  const bytes = Buffer.from(text, 'utf8');
  return Buffer.concat([u32(bytes.length), bytes]);
};

/** Messages that a signature may be over, written down apart from the worker's own code so that the two check each other. */
export const proofMessages = (
  claim: Pick<ProofClaim, 'networkId' | 'contractId' | 'requestId' | 'raffleId'>,
): Buffer[] => {
  const plain = Buffer.concat([Buffer.from(claim.requestId, 'utf8'), u32(claim.raffleId)]);
  const domainSeparated = Buffer.concat([
    Buffer.from([0xff]),
    Buffer.from('sorolane:randomness:2\0', 'utf8'),
    claim.networkId,
    lengthPrefixed(claim.contractId),
    lengthPrefixed(claim.requestId),
    Buffer.from([1]),
    u32(claim.raffleId),
  ]);
  return [plain, domainSeparated];
};

/** The seed is always the hash of the proof; only a large raffle's proof can be checked by everyone. */
export const verifyRaffleProof: VerifyProof = (claim) => {
  if (!createHash('sha256').update(claim.proof).digest().equals(claim.seed)) return undefined;
  const isSigned = proofMessages(claim).some((message) =>
    verifyEd25519(claim.oracleKey, message, claim.proof),
  );
  if (isSigned) return 'vrf';
  return claim.prizeStroops < vrfThresholdStroops ? 'prng' : undefined;
};
