import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';

/** SHA-256, in hex, of a JSON value in canonical form (RFC 8785): the same however it was spaced and ordered. */
export function canonicalHash(value: unknown): string {
  const text = canonicalize(value);
  if (text === undefined) throw new TypeError('not a JSON value');
  return createHash('sha256').update(text, 'utf8').digest('hex');
}
