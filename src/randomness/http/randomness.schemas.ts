import { z } from 'zod';
import { wholeNumber, wholeNumberText } from '../../platform/input-schemas';
import { accountAddress, isAccountAddress, isContractAddress, isSoundAddress } from '../../stellar/keys';
import { OPENING_BYTES } from '../seeds/commit-reveal';
import { PROOF_BYTES, SEED_BYTES } from '../seeds/seed-proof';

const MAX_U32 = 0xffff_ffff;
const MAX_PAGE = 500;

const hexOf = (bytes: number) =>
  z
    .string()
    .regex(new RegExp(`^[0-9a-fA-F]{${bytes * 2}}$`), `expected ${bytes} bytes in hex`)
    .transform((text) => text.toLowerCase());

const requestId = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9:._-]{0,127}$/,
    'expected 1 to 128 characters: a letter or digit, then letters, digits, ":", ".", "_" or "-"',
  );

const raffleId = wholeNumber(0, MAX_U32);

const contractId = z.string().refine(isContractAddress, 'expected a C… contract id');

const whereGiven = (words: string) => ({
  error: ({ input }: { input?: unknown }) => (input === undefined ? 'is required' : words),
});

export const submitSchema = z.strictObject({
  requestId,
  raffleId: raffleId.optional(),
  contractId: contractId.optional(),
  /** XLM. */
  prizeAmount: z
    .number(whereGiven('expected a number of XLM, 0 or more'))
    .nonnegative('expected a number of XLM, 0 or more')
    .optional(),
  priority: z
    .union(
      [z.boolean(), z.enum(['high', 'critical'])],
      whereGiven('expected true, false, "high" or "critical"'),
    )
    .optional(),
});

/** A G… address, or the 32 bytes of one in hex or base64. */
const publicKey = z.string().transform((text, context) => {
  const refuse = (message: string) => {
    context.addIssue({ code: 'custom', message, input: text });
    return z.NEVER;
  };
  const address = addressOf(text);
  if (address === null) return refuse('expected a G… address or 32 bytes in hex or base64');
  return isSoundAddress(address)
    ? address
    : refuse(
        'expected a key that only its holder can sign with (its point is of small order, or not canonical)',
      );
});

function addressOf(text: string): string | null {
  if (isAccountAddress(text)) return text;
  if (/^[0-9a-fA-F]{64}$/.test(text)) return accountAddress(Buffer.from(text, 'hex'));
  return /^[A-Za-z0-9+/]{43}=$/.test(text) ? accountAddress(Buffer.from(text, 'base64')) : null;
}

export const verifySchema = z.strictObject({
  requestId,
  raffleId: raffleId.nullable().optional(),
  contractId: contractId.optional(),
  /** Of a signature or a keyed hash 64 bytes; of a reveal its secret and nonce, 48. */
  proof: z.union(
    [hexOf(PROOF_BYTES), hexOf(OPENING_BYTES)],
    whereGiven('expected 64 bytes in hex, or of a revealed commitment its 48'),
  ),
  seed: hexOf(SEED_BYTES).optional(),
  /** What a reveal opens, where neither we nor the raffle know of one. */
  commitment: hexOf(SEED_BYTES).optional(),
  publicKey: publicKey.optional(),
});

export const requestIdSchema = z.object({ requestId });

const limit = wholeNumberText(1, MAX_PAGE).default(100);

export const jobsQuerySchema = z.strictObject({
  limit,
  after: z
    .string()
    .regex(/^[0-9a-f]{24}$/, 'expected the key that the page before gave')
    .optional(),
});

export const auditQuerySchema = z.strictObject({
  limit,
  /** The `next` of the page before; rows come newest first. */
  after: wholeNumberText(1, Number.MAX_SAFE_INTEGER).optional(),
  requestId: requestId.optional(),
  raffleId: wholeNumberText(0, MAX_U32).optional(),
});
