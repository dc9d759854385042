import { canonicalHash } from './canonical-hash';

/** Holds the oracle's key. The stellar floor's signer satisfies it. */
export interface AttestationSigner {
  /** G… strkey. */
  readonly publicKey: string;
  /** Ed25519 over exactly these bytes. */
  sign(bytes: Uint8Array): Promise<Uint8Array>;
}

/** What the oracle vouches for. The attestation hash is the canonical hash of this document. */
export interface AttestationDocument {
  version: 1;
  eventId: string;
  requester: string;
  mediaCid: string;
  manifestCid: string;
  contentHash: string;
  manifestHash: string;
  codeMeasurementHash: string;
  /** G… strkey. */
  oracle: string;
}

/** All in hex. */
export interface Attestation {
  attestationHash: string;
  /** Ed25519, 64 bytes, over the 32 bytes of `attestationHash`. */
  signature: string;
  codeMeasurementHash: string;
}

export async function attest(
  facts: Omit<AttestationDocument, 'version' | 'oracle'>,
  signer: AttestationSigner,
): Promise<Attestation> {
  const document: AttestationDocument = { version: 1, oracle: signer.publicKey, ...facts };
  const attestationHash = canonicalHash(document);
  const signature = await signer.sign(Buffer.from(attestationHash, 'hex'));
  return {
    attestationHash,
    signature: Buffer.from(signature).toString('hex'),
    codeMeasurementHash: facts.codeMeasurementHash,
  };
}
