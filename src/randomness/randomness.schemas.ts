import { z } from 'zod';
import { OPENING_BYTES } from './commit-reveal';
import { PROOF_BYTES, SEED_BYTES } from './seed-proof';
import { accountAddress, isAccountAddress, isContractAddress } from '../stellar/keys';

const hexOf = (bytes: number) =>
  z
    .string()
    .regex(new RegExp(`^[0-9a-fA-F]{${bytes * 2}}$`), `expected ${bytes} bytes in hex`)
    .transform((text) => text.toLowerCase());

const requestId = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9:._-]{0,127}$/,
    'expected 1 to 128 of letters, digits, ":", ".", "_" and "-"',
  );

const raffleId = z.number().int().min(0).max(0xffff_ffff);

const contractId = z.string().refine(isContractAddress, 'expected a C… contract id');

export const submitSchema = z.strictObject({
  requestId,
  raffleId: raffleId.optional(),
  contractId: contractId.optional(),
  /** XLM. */
  prizeAmount: z.number().nonnegative().optional(),
  priority: z.union([z.boolean(), z.enum(['high', 'critical'])]).optional(),
});

/** A G… address, or the 32 bytes of one in hex or base64. */
const publicKey = z.string().transform((text, context) => {
  if (isAccountAddress(text)) return text;
  const raw = Buffer.from(text, /^[0-9a-fA-F]{64}$/.test(text) ? 'hex' : 'base64');
  if (raw.length === 32) return accountAddress(raw);
  context.addIssue({ code: 'custom', message: 'expected a G… address or 32 bytes in hex or base64' });
  return z.NEVER;
});

export const verifySchema = z.strictObject({
  requestId,
  raffleId: raffleId.nullable().optional(),
  contractId: contractId.optional(),
  /** Of a signature or a keyed hash 64 bytes; of a reveal its secret and nonce, 48. */
  proof: z.union([hexOf(PROOF_BYTES), hexOf(OPENING_BYTES)], {
    error: 'expected 64 bytes in hex, or of a revealed commitment its 48',
  }),
  seed: hexOf(SEED_BYTES).optional(),
  /** What a reveal opens; left out: what is known here of the raffle. */
  commitment: hexOf(SEED_BYTES).optional(),
  publicKey: publicKey.optional(),
});

export const requestIdSchema = z.object({ requestId });

const limit = z.coerce.number().int().min(1).max(500).default(100);
const wholeNumber = z.coerce.number().int().min(0);

export const jobsQuerySchema = z.object({
  limit,
  after: z
    .string()
    .regex(/^[0-9a-f]{24}$/, 'expected the key that the page before gave')
    .optional(),
});

export const auditQuerySchema = z.object({
  limit,
  before: wholeNumber.optional(),
  requestId: requestId.optional(),
  raffleId: wholeNumber.max(0xffff_ffff).optional(),
});
