import type { IpfsGateway } from './ipfs-gateway';
import { parseManifest } from './manifest';

/** Why the content was not verified. Stable, public. */
export type RejectionCode =
  | 'MANIFEST_NOT_JSON'
  | 'MANIFEST_INVALID'
  | 'MANIFEST_HASH_MISMATCH'
  | 'CREATOR_MISMATCH'
  | 'CONTENT_HASH_MISMATCH';

/** The answer "no", of the verdict or of a later step. */
export interface Rejection {
  code: string;
  message: string;
}

/**
 * - manifestHash: SHA-256 of the manifest's raw bytes. It goes on chain.
 * - canonicalManifestHash: SHA-256 of its canonical JSON; null when it isn't JSON of one meaning.
 * - contentHash: SHA-256 of the media; null when the manifest alone settled the verdict and no media was fetched.
 */
export interface Verdict {
  manifestHash: string;
  canonicalManifestHash: string | null;
  contentHash: string | null;
  /** Null: verified. */
  rejection: Rejection | null;
}

export interface VerdictRequest {
  manifestCid: string;
  mediaCid: string;
  requester: string;
  /** What the requester says the canonical manifest hash is; null when it says nothing. */
  expectedCanonicalManifestHash: string | null;
}

export interface VerdictLimits {
  maxManifestBytes: number;
  maxMediaBytes: number;
}

/**
 * Fetches manifest and media and compares them. A verdict of "no" is an answer, not an error.
 * @throws TransientError, PermanentError (SPV_FETCH_FAILED) when the content can't be had.
 */
export async function reachVerdict(
  gateway: IpfsGateway,
  limits: VerdictLimits,
  request: VerdictRequest,
  signal: AbortSignal,
): Promise<Verdict> {
  const { sha256: manifestHash, bytes } = await gateway.read(
    request.manifestCid,
    limits.maxManifestBytes,
    signal,
  );
  const parsed = parseManifest(bytes);
  const settled = (
    code: RejectionCode,
    message: string,
    canonicalManifestHash: string | null,
    contentHash: string | null = null,
  ): Verdict => ({ manifestHash, canonicalManifestHash, contentHash, rejection: { code, message } });

  if (parsed.kind === 'not_json') return settled('MANIFEST_NOT_JSON', 'the manifest is not JSON', null);
  if (parsed.kind === 'ambiguous') return settled('MANIFEST_INVALID', parsed.problem, null);
  const { canonicalManifestHash } = parsed;
  const expected = request.expectedCanonicalManifestHash;
  if (expected !== null && expected !== canonicalManifestHash) {
    return settled(
      'MANIFEST_HASH_MISMATCH',
      'the manifest is not the one whose canonical hash was given',
      canonicalManifestHash,
    );
  }
  if (parsed.kind === 'bad_field') return settled('MANIFEST_INVALID', parsed.problem, canonicalManifestHash);
  if (parsed.manifest.creator !== request.requester) {
    return settled('CREATOR_MISMATCH', 'the manifest names another creator', canonicalManifestHash);
  }

  const { sha256: contentHash } = await gateway.hash(request.mediaCid, limits.maxMediaBytes, signal);
  if (contentHash !== parsed.manifest.contentHash) {
    return settled(
      'CONTENT_HASH_MISMATCH',
      'the media is not what the manifest describes',
      canonicalManifestHash,
      contentHash,
    );
  }
  return { manifestHash, canonicalManifestHash, contentHash, rejection: null };
}
