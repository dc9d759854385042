import { createHash } from 'node:crypto';
import { Keypair } from '@stellar/stellar-sdk';

export interface DemoRequest {
  index: number;
  /** Whether its media match its manifest. */
  valid: boolean;
  media: Uint8Array;
  manifest: Uint8Array;
  /** SHA-256 of the manifest's bytes, hex: what its certificate carries. */
  manifestHash: string;
  /** G… strkey. */
  requester: string;
}

const REQUESTERS = 5;
const sha256 = (data: Uint8Array | string): Buffer => createHash('sha256').update(data).digest();
const derived = (...parts: (string | number)[]): Buffer => sha256(parts.join(':'));

/** Requests that depend on nothing but the seed. The ones to be rejected are spread evenly among the others. */
export function makeWorkload({
  requests,
  reject,
  seed,
}: {
  requests: number;
  reject: number;
  seed: number;
}): DemoRequest[] {
  return Array.from({ length: requests }, (_, index) => {
    const valid = Math.floor(((index + 1) * reject) / requests) === Math.floor((index * reject) / requests);
    const media = Buffer.concat([Buffer.from(`media ${seed}/${index}\n`), derived('media', seed, index)]);
    const requester = Keypair.fromRawEd25519Seed(derived('requester', seed, index % REQUESTERS)).publicKey();
    const contentHash = (valid ? sha256(media) : derived('other', seed, index)).toString('hex');
    const manifest = Buffer.from(
      JSON.stringify({ contentHash, creator: requester, title: `Demo item ${index}`, seed }),
    );
    return { index, valid, media, manifest, manifestHash: sha256(manifest).toString('hex'), requester };
  });
}
