import { z } from 'zod';
import { rejectionCodes } from './transaction-result';

const ms = z.int().nonnegative();
const ledgers = z.int().nonnegative();

/** What befalls one call. `holdMs` is how long a silent connection stays open before it is cut. */
export const callFaultSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('latency'), ms }),
  z.strictObject({ kind: z.literal('timeoutBefore'), holdMs: ms.default(30_000) }),
  z.strictObject({ kind: z.literal('timeoutAfter'), holdMs: ms.default(30_000) }),
  z.strictObject({ kind: z.literal('dropBefore') }),
  z.strictObject({ kind: z.literal('dropReply') }),
  z.strictObject({
    kind: z.literal('httpStatus'),
    status: z.int().min(400).max(599),
    retryAfterSeconds: z.int().nonnegative().optional(),
  }),
  z.strictObject({ kind: z.literal('rpcError'), code: z.int(), message: z.string() }),
  /** getHealth of a node that is behind: a JSON-RPC error, as the real one answers. */
  z.strictObject({ kind: z.literal('unhealthy') }),
  z.strictObject({ kind: z.literal('tryAgainLater') }),
  z.strictObject({ kind: z.literal('sendError'), code: z.enum(rejectionCodes) }),
  /** Body faults, for the IPFS gateway only. */
  z.strictObject({ kind: z.literal('slowDrip'), chunkBytes: z.int().positive(), intervalMs: ms }),
  z.strictObject({ kind: z.literal('truncate'), afterBytes: z.int().nonnegative() }),
  z.strictObject({ kind: z.literal('wrongBytes') }),
]);
export type CallFault = z.infer<typeof callFaultSchema>;

/** What is wrong with an endpoint as long as the rule stands. */
export const conditionSchema = z.discriminatedUnion('kind', [
  /** The node shows the chain as it was that many ledgers ago. */
  z.strictObject({ kind: z.literal('lag'), ledgers }),
  /** The node remembers only that many ledgers. */
  z.strictObject({ kind: z.literal('retention'), ledgers: ledgers.min(1) }),
  /** The node belongs to another chain: other ledger numbers, none of our transactions. */
  z.strictObject({ kind: z.literal('otherHistory'), ledgerOffset: z.int() }),
  z.strictObject({ kind: z.literal('meta'), version: z.union([z.literal(3), z.literal(4)]) }),
  /** Stroops per operation below which no ledger takes a transaction; of the network, whatever `endpoints` says. */
  z.strictObject({ kind: z.literal('surge'), minFeeRate: z.int().nonnegative() }),
]);
export type Condition = z.infer<typeof conditionSchema>;

export const faultRuleSchema = z.strictObject({
  /** Where: JSON-RPC endpoints or the IPFS gateway. */
  surface: z.enum(['rpc', 'ipfs']).default('rpc'),
  /** Indexes of endpoints; all when absent. */
  endpoints: z.array(z.int().nonnegative()).optional(),
  /** JSON-RPC methods; all when absent. */
  methods: z.array(z.string()).optional(),
  /** CIDs; all when absent. */
  cids: z.array(z.string()).optional(),
  /** Share of the matching calls, 0 to 1. */
  probability: z.number().min(0).max(1).default(1),
  /** Spares the first matching calls. */
  after: z.int().nonnegative().default(0),
  /** Strikes at most that many times. */
  times: z.int().positive().optional(),
  fault: z.union([callFaultSchema, conditionSchema]),
});
export type FaultRule = z.infer<typeof faultRuleSchema>;
export type FaultRuleInput = z.input<typeof faultRuleSchema>;

export const faultPlanSchema = z.strictObject({
  /** Makes every draw repeatable: the n-th call of an endpoint meets the same fate in each run. */
  seed: z.int().default(1),
  /** Share of all JSON-RPC calls that meet a transport fault, 0 to 1. */
  rate: z.number().min(0).max(1).default(0),
  /** Share of all gateway reads that meet a retryable fault, 0 to 1. */
  ipfsRate: z.number().min(0).max(1).default(0),
  /** How long the timeouts of `rate` and `ipfsRate` stay silent. */
  holdMs: ms.default(1_500),
  rules: z.array(faultRuleSchema).default([]),
});
export type FaultPlan = z.infer<typeof faultPlanSchema>;
export type FaultPlanInput = z.input<typeof faultPlanSchema>;

const presetKeys = new Set(['seed', 'rate', 'ipfsRate', 'holdMs']);

/** Reads a plan as JSON, or as a preset such as `rate=0.3,seed=7`. Throws a ZodError or SyntaxError when it is neither. */
export const parseFaultPlan = (text: string): FaultPlan => {
  const trimmed = text.trim();
  if (trimmed.startsWith('{')) return faultPlanSchema.parse(JSON.parse(trimmed));
  if (trimmed.startsWith('[')) return faultPlanSchema.parse({ rules: JSON.parse(trimmed) as unknown });
  const pairs = trimmed.split(',').map((pair) => {
    const [key = '', value = ''] = pair.split('=').map((part) => part.trim());
    if (!presetKeys.has(key) || value === '') {
      throw new SyntaxError(`expected JSON or ${[...presetKeys].join('=…, ')}=…, got "${pair}"`);
    }
    return [key, Number(value)];
  });
  return faultPlanSchema.parse(Object.fromEntries(pairs));
};
