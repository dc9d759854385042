import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { PermanentError } from '../../platform/errors';
import { verifySignature } from '../../stellar/keys';
import { taggedBytes } from './randomness-message';

/** Methods whose seed is the hash of a 64-byte proof. */
export type SeedMethod = 'VRF' | 'PRNG';
/** The third opens a commitment that was made before. */
export type RandomnessMethod = SeedMethod | 'COMMIT_REVEAL';

export const SEED_BYTES = 32;
export const PROOF_BYTES = 64;

export interface SeedAndProof {
  /** 32 bytes: SHA-256 of the proof, whatever the method. */
  seed: Buffer;
  /** 64 bytes. VRF: the oracle's Ed25519 signature over the message. PRNG: HMAC-SHA-512 of it under the oracle's secret. */
  proof: Buffer;
}

/** Signs with Ed25519, which is deterministic: the same message gives the same seed on every worker and every retry. */
export type Sign = (message: Uint8Array) => Promise<Uint8Array>;

export async function computeVrf(message: Uint8Array, sign: Sign): Promise<SeedAndProof> {
  return withSeed(Buffer.from(await sign(message)));
}

/** Anyone can check it with the oracle's public key (G… strkey). */
export function verifyVrf(message: Uint8Array, claimed: SeedAndProof, publicKey: string): boolean {
  return seedMatches(claimed) && verifySignature(publicKey, message, claimed.proof);
}

/** Nobody without `secret` can tell the seed in advance, or check it afterwards beyond `seed = SHA-256(proof)`. */
export function computePrng(message: Uint8Array, secret: Uint8Array): SeedAndProof {
  return withSeed(createHmac('sha512', secret).update(taggedBytes('prng:1')).update(message).digest());
}

export function verifyPrng(message: Uint8Array, claimed: SeedAndProof, secret: Uint8Array): boolean {
  return seedMatches(claimed) && sameBytes(claimed.proof, computePrng(message, secret).proof);
}

/**
 * The PRNG's secret out of the signing key, so that there is one key to guard and to rotate and it never has to leave a
 * KMS. The signed bytes can't be had as a proof: see the mark of {@link taggedBytes}.
 */
export async function derivePrngSecret(sign: Sign): Promise<Buffer> {
  return sha256(await sign(taggedBytes('prng-secret:1')));
}

/** The seed of contracts that take a u64: the first eight bytes, big-endian. */
export const seedAsU64 = (seed: Uint8Array): bigint => Buffer.from(seed).readBigUInt64BE(0);

function withSeed(proof: Buffer): SeedAndProof {
  if (proof.length !== PROOF_BYTES)
    throw new PermanentError(
      'WRONG_SIGNER',
      `the signer gave ${proof.length} bytes where an Ed25519 signature has ${PROOF_BYTES}`,
    );
  return { seed: sha256(proof), proof };
}

const seedMatches = ({ seed, proof }: SeedAndProof): boolean => sameBytes(seed, sha256(proof));

const sha256 = (bytes: Uint8Array): Buffer => createHash('sha256').update(bytes).digest();

const sameBytes = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && timingSafeEqual(a, b);
