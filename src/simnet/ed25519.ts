import { createPublicKey, verify } from 'node:crypto';
import { memoized } from './memoized';

/** DER prefix of a SubjectPublicKeyInfo that holds a raw Ed25519 key. */
const spkiPrefix = Buffer.from('302a300506032b6570032100', 'hex');

const keyOf = memoized((hex) =>
  createPublicKey({ key: Buffer.concat([spkiPrefix, Buffer.from(hex, 'hex')]), format: 'der', type: 'spki' }),
);

/** Native verification: about ten times faster than the SDK's, and each ledger checks hundreds. */
export const verifyEd25519 = (publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean => {
  if (publicKey.length !== 32 || signature.length !== 64) return false;
  return verify(null, message, keyOf(Buffer.from(publicKey).toString('hex')), signature);
};
