import { createHash, randomBytes } from 'node:crypto';

export const COMMIT_SECRET_BYTES = 32;
export const COMMIT_NONCE_BYTES = 16;
export const OPENING_BYTES = COMMIT_SECRET_BYTES + COMMIT_NONCE_BYTES;

export interface CommitmentOpening {
  /** 32 bytes. */
  secret: Buffer;
  /** 16 bytes. */
  nonce: Buffer;
}

export const newCommitmentOpening = (): CommitmentOpening => ({
  secret: randomBytes(COMMIT_SECRET_BYTES),
  nonce: randomBytes(COMMIT_NONCE_BYTES),
});

/** SHA-256 over the 48 raw bytes, as the contract hashes them; over their hex text it would never match on chain. */
export function commitmentOf({ secret, nonce }: CommitmentOpening): Buffer {
  if (secret.length !== COMMIT_SECRET_BYTES || nonce.length !== COMMIT_NONCE_BYTES) {
    throw new RangeError(
      `an opening is ${COMMIT_SECRET_BYTES} bytes of secret and ${COMMIT_NONCE_BYTES} of nonce`,
    );
  }
  return createHash('sha256').update(secret).update(nonce).digest();
}

/** The seed that an opening gives: SHA-256 over secret, nonce and the raffle's number as four big-endian bytes. */
export function revealedSeed({ secret, nonce }: CommitmentOpening, raffleId: number): Buffer {
  const number = Buffer.alloc(4);
  number.writeUInt32BE(raffleId);
  return createHash('sha256').update(secret).update(nonce).update(number).digest();
}

/** Secret and nonce out of the {@link OPENING_BYTES} bytes that serve as the proof of a reveal. */
export const openingOf = (proof: Buffer): CommitmentOpening => ({
  secret: proof.subarray(0, COMMIT_SECRET_BYTES),
  nonce: proof.subarray(COMMIT_SECRET_BYTES, OPENING_BYTES),
});
