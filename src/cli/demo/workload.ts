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

export interface DemoRaffle {
  prizeLumens: number;
}

export interface Workload {
  requests: readonly DemoRequest[];
  raffles: readonly DemoRaffle[];
}

const REQUESTERS = 5;
/** One below the threshold of the VRF, one above it, one with high priority. */
const PRIZES_LUMENS = [100, 2_000, 20_000];
const sha256 = (data: Uint8Array | string): Buffer => createHash('sha256').update(data).digest();
const derived = (...parts: (string | number)[]): Buffer => sha256(parts.join(':'));

/** Work that depends on nothing but the seed. */
export function makeWorkload(size: {
  requests: number;
  reject: number;
  raffles: number;
  seed: number;
}): Workload {
  return {
    requests: makeRequests(size),
    raffles: Array.from({ length: size.raffles }, (_, index) => ({
      prizeLumens: PRIZES_LUMENS[index % PRIZES_LUMENS.length] as number,
    })),
  };
}

/** The ones to be rejected are spread evenly among the others. */
function makeRequests({
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
