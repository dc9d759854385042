import { z } from 'zod';
import { wholeNumberText } from '../platform/input-schemas';
import { parseContentId } from './spv/content-id';
import { isAccountAddress } from '../stellar/keys';

const requiredText = z.string({
  error: ({ input }) => (input === undefined ? 'is required' : 'expected a string'),
});

const contentId = requiredText.refine(async (text) => (await parseContentId(text)) !== null, {
  error: 'expected an IPFS CID, version 0 or version 1 in base32',
});

const accountId = requiredText.refine(isAccountAddress, { error: 'expected a Stellar account address (G…)' });

const idempotencyKey = z
  .string()
  .regex(/^[\x21-\x7e]{1,200}$/, { error: 'expected 1 to 200 printable characters without spaces' });

export const submitSchema = z.strictObject({
  manifestCid: contentId,
  mediaCid: contentId,
  requester: accountId,
  idempotencyKey: idempotencyKey.optional(),
  canonicalManifestHash: z
    .string()
    .regex(/^[0-9a-f]{64}$/, { error: 'expected 64 lower-case hex digits' })
    .optional(),
});

export const idempotencyHeaderSchema = z.object({ 'idempotency-key': idempotencyKey.optional() });

export const idSchema = z.object({
  id: z.string().regex(/^[0-9a-f]{24}$/, { error: 'expected 24 lower-case hex digits' }),
});

const MAX_PAGE = 100;

export const listSchema = z.strictObject({
  ownerPublicKey: accountId,
  limit: wholeNumberText(1, MAX_PAGE).default(20),
  after: z
    .string()
    .regex(/^\d{1,15}-[0-9a-f]{24}$/, { error: 'expected the `next` of an earlier page' })
    .optional(),
});
