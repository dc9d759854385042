import { createHash, createPrivateKey, createPublicKey, hkdfSync, sign, verify } from 'node:crypto';
import { Keypair, StrKey } from '@stellar/stellar-sdk';
import { PermanentError } from '../platform/errors';
import { isSoundKey } from './ed25519-key';

/** Something that signs with one Ed25519 key. Asynchronous, so that a remote key service can stand in for the seed. */
export interface Signer {
  /** G… strkey. */
  readonly publicKey: string;
  /** Raw 64-byte Ed25519 signature over exactly `bytes` (no hashing before). */
  sign(bytes: Uint8Array): Promise<Uint8Array>;
}

/** DER around raw Ed25519 keys, for the runtime's own signatures: some twenty times faster than the SDK's. */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');

function signerOf(keypair: Keypair): Signer {
  const der = Buffer.concat([PKCS8_PREFIX, keypair.rawSecretKey()]);
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  return {
    publicKey: keypair.publicKey(),
    sign: (bytes) => Promise.resolve(new Uint8Array(sign(null, bytes, key))),
  };
}

/** @throws PermanentError INVALID_SECRET_KEY; the message never quotes it. */
export function signerFromSecret(secret: string): Signer {
  return signerOf(keypairOf(secret));
}

function keypairOf(secret: string): Keypair {
  // No cause: the SDK's own message may quote what it was given.
  if (!StrKey.isValidEd25519SecretSeed(secret)) {
    throw new PermanentError('INVALID_SECRET_KEY', 'a secret key is not a valid S… seed');
  }
  return Keypair.fromSecret(secret);
}

/**
 * Channel accounts that every process holding the main secret derives alike, so that none has to be configured.
 * One way: a channel's key reveals nothing of the main one.
 */
export function deriveChannelSigners(mainSecret: string, networkPassphrase: string, count: number): Signer[] {
  const seed = keypairOf(mainSecret).rawSecretKey();
  return Array.from({ length: count }, (_, index) => {
    const derived = hkdfSync(
      'sha256',
      seed,
      networkIdHash(networkPassphrase),
      `sorolane/channel/${index}`,
      32,
    );
    return signerOf(Keypair.fromRawEd25519Seed(Buffer.from(derived)));
  });
}

/** SHA-256 of the passphrase: what every signature on this network is bound to. */
export const networkIdHash = (networkPassphrase: string): Uint8Array =>
  new Uint8Array(createHash('sha256').update(networkPassphrase).digest());

/** True for a G… address with a right checksum. */
export const isAccountAddress = (address: string): boolean => StrKey.isValidEd25519PublicKey(address);

/** True for a C… address with a right checksum. */
export const isContractAddress = (address: string): boolean => StrKey.isValidContract(address);

/** The 32 bytes of a G… address. @throws PermanentError INVALID_ADDRESS */
export function rawPublicKey(address: string): Uint8Array {
  if (!isAccountAddress(address))
    throw new PermanentError('INVALID_ADDRESS', 'expected a G… account address');
  return new Uint8Array(StrKey.decodeEd25519PublicKey(address));
}

/** The G… address of 32 bytes. @throws PermanentError INVALID_ADDRESS */
export function accountAddress(raw: Uint8Array): string {
  if (raw.length !== 32) throw new PermanentError('INVALID_ADDRESS', 'a public key has 32 bytes');
  return StrKey.encodeEd25519PublicKey(Buffer.from(raw));
}

/** True for a G… address under whose key a signature says anything; see {@link isSoundKey}. */
export const isSoundAddress = (address: string): boolean =>
  isAccountAddress(address) && isSoundKey(rawPublicKey(address));

/** Checks a raw Ed25519 signature over `bytes`; false for anything malformed, and under a key that anyone can sign for. */
export function verifySignature(address: string, bytes: Uint8Array, signature: Uint8Array): boolean {
  if (!isSoundAddress(address) || signature.length !== 64) return false;
  const der = Buffer.concat([SPKI_PREFIX, rawPublicKey(address)]);
  return verify(null, bytes, createPublicKey({ key: der, format: 'der', type: 'spki' }), signature);
}
