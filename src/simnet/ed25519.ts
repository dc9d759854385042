import { createPublicKey, verify } from 'node:crypto';

/** DER prefix of a SubjectPublicKeyInfo that holds a raw Ed25519 key. */
const spkiPrefix = Buffer.from('302a300506032b6570032100', 'hex');

/** Native verification: about ten times faster than the SDK's, and each ledger checks hundreds. */
export const verifyEd25519 = (publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean => {
  if (publicKey.length !== 32 || signature.length !== 64) return false;
  const key = createPublicKey({ key: Buffer.concat([spkiPrefix, publicKey]), format: 'der', type: 'spki' });
  return verify(null, message, key, signature);
};
