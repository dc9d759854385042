import { z } from 'zod';
import { canonicalHash } from '../canonical-hash';
import { parseJsonDocument } from './json-document';

/** What the pipeline reads of a manifest. It may hold more; all of it goes into the hashes. */
export interface Manifest {
  /** SHA-256 of the media, 64 lower-case hex digits. */
  contentHash: string;
  /** G… strkey of whoever made the media. */
  creator: string;
}

export type ParsedManifest =
  | { kind: 'parsed'; manifest: Manifest; canonicalManifestHash: string }
  | { kind: 'not_json' }
  /** JSON, but not of one meaning; so it has no canonical hash. */
  | { kind: 'ambiguous'; problem: string }
  | { kind: 'bad_field'; problem: string; canonicalManifestHash: string };

const manifestSchema = z.object({
  contentHash: z
    .string()
    .regex(/^(?:sha256:)?[0-9a-fA-F]{64}$/, { error: 'expected 64 hex digits, or those after "sha256:"' })
    .transform((text) => text.replace(/^sha256:/, '').toLowerCase()),
  creator: z.string().regex(/^G[A-Z2-7]{55}$/, { error: 'expected a G… address' }),
});

const utf8 = new TextDecoder('utf-8', { fatal: true });

export function parseManifest(bytes: Uint8Array): ParsedManifest {
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    return { kind: 'not_json' };
  }
  const document = parseJsonDocument(text);
  if (document.kind === 'ambiguous') return { kind: 'ambiguous', problem: `manifest: ${document.problem}` };
  if (document.kind === 'not_json') return document;
  const canonicalManifestHash = canonicalHash(document.value);
  const parsed = manifestSchema.safeParse(document.value);
  if (parsed.success) return { kind: 'parsed', manifest: parsed.data, canonicalManifestHash };
  const problem = parsed.error.issues
    .map((issue) => `${issue.path.join('.') || 'manifest'}: ${issue.message}`)
    .join('; ');
  return { kind: 'bad_field', problem, canonicalManifestHash };
}
