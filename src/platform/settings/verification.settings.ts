import { z } from 'zod';
import { variable } from './variables';

const textOfForm = (form: RegExp, expected: string, fallback: string, about: string) =>
  z
    .string()
    .optional()
    .transform((text) => text ?? fallback)
    .refine((text) => form.test(text), { error: `expected ${expected}` })
    .meta({ about });

export const verificationSettings = {
  PINATA_GATEWAY_URL: textOfForm(
    /^https?:\/\/[^\s?#@]+$/,
    'an http(s) URL without credentials or query',
    'https://gateway.pinata.cloud/ipfs',
    'IPFS gateway; a CID is fetched from <this>/<cid>.',
  ),
  SPV_FETCH_TIMEOUT_MS: variable.durationMs(
    30_000,
    'Longest time for one fetch from the gateway, body included.',
  ),
  SPV_MAX_MEDIA_BYTES: variable.count(104_857_600, 'Largest media file taken from the gateway, in bytes.', {
    min: 1,
  }),
  SPV_MAX_MANIFEST_BYTES: variable.count(1_048_576, 'Largest manifest taken from the gateway, in bytes.', {
    min: 1,
  }),
  ORACLE_CODE_MEASUREMENT_HASH: variable.pattern(
    /^[0-9a-f]{64}$/,
    '64 lower-case hex digits',
    'SHA-256 of the attesting code; the registry contract has to know it.',
  ),
  PROVENANCE_LOOKUP_FUNCTION: textOfForm(
    /^[a-z_][a-z0-9_]{0,31}$/,
    'the name of a contract function',
    'get_certificate_by_manifest',
    'Function of the provenance contract that finds a certificate id by manifest hash.',
  ),
  MINT_RECHECK_MS: variable.durationMs(
    10_000,
    'Wait before asking again for the outcome of a mint that is on its way.',
  ),
  MANIFEST_REHASH_ENABLED: variable.flag(
    true,
    'Whether manifests of waiting jobs are re-hashed in the background.',
  ),
  MANIFEST_REHASH_INTERVAL_MS: variable.durationMs(
    60_000,
    'Pause between two scans for manifests to re-hash.',
  ),
  MANIFEST_REHASH_BATCH_SIZE: variable.count(100, 'Most manifests put up for re-hashing by one scan.', {
    min: 1,
    max: 1000,
  }),
  VERIFICATION_REQUESTED_TOPIC: textOfForm(
    /^[A-Za-z0-9_]{1,32}$/,
    'a contract symbol',
    'verification_requested',
    'First topic of the contract event that asks for a verification.',
  ),
  CERTIFICATE_MINTED_TOPIC: textOfForm(
    /^[A-Za-z0-9_]{1,32}$/,
    'a contract symbol',
    'certificate_minted',
    'First topic of the contract event that tells of a minted certificate.',
  ),
} as const;
