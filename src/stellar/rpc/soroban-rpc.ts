import { xdr } from '@stellar/stellar-sdk';
import { z } from 'zod';
import type { Endpoint } from './endpoint';
import type { Answer, CallOptions, RpcPool } from './rpc-pool';

/** Seconds since the epoch, which nodes write as strings. */
const seconds = z.coerce.number();

/** Checked where the answer comes in, so that a node that sends garbage is passed over like one that sends none. */
const xdrOf = (type: { validateXDR(text: string, format: 'base64'): boolean }) =>
  z
    .string()
    .refine((text) => type.validateXDR(text, 'base64'), { error: 'is not the XDR that was asked for' });

const ledgerRange = {
  latestLedger: z.number(),
  latestLedgerCloseTime: seconds,
  oldestLedger: z.number(),
};

const simulationSchema = z.object({
  latestLedger: z.number(),
  error: z.string().optional(),
  transactionData: xdrOf(xdr.SorobanTransactionData).optional(),
  minResourceFee: z.coerce.bigint().optional(),
  events: z.array(z.string()).nullish(),
  results: z
    .array(z.object({ auth: z.array(xdrOf(xdr.SorobanAuthorizationEntry)).nullish(), xdr: xdrOf(xdr.ScVal) }))
    .nullish(),
  restorePreamble: z
    .object({ transactionData: xdrOf(xdr.SorobanTransactionData), minResourceFee: z.coerce.bigint() })
    .nullish(),
});
export type Simulation = z.infer<typeof simulationSchema>;

const sendSchema = z.object({
  status: z.enum(['PENDING', 'DUPLICATE', 'TRY_AGAIN_LATER', 'ERROR']),
  hash: z.string(),
  latestLedger: z.number(),
  latestLedgerCloseTime: seconds,
  errorResultXdr: xdrOf(xdr.TransactionResult).optional(),
});
export type SendReply = z.infer<typeof sendSchema>;

const landed = {
  ...ledgerRange,
  ledger: z.number(),
  createdAt: seconds,
  resultXdr: xdrOf(xdr.TransactionResult),
  resultMetaXdr: xdrOf(xdr.TransactionMeta),
  diagnosticEventsXdr: z.array(xdrOf(xdr.DiagnosticEvent)).nullish(),
};
const transactionSchema = z.discriminatedUnion('status', [
  z.object({ status: z.literal('NOT_FOUND'), ...ledgerRange }),
  z.object({ status: z.literal('SUCCESS'), ...landed }),
  z.object({ status: z.literal('FAILED'), ...landed }),
]);
export type TransactionReply = z.infer<typeof transactionSchema>;
export type LandedTransaction = Exclude<TransactionReply, { status: 'NOT_FOUND' }>;

const entriesSchema = z.object({
  latestLedger: z.number(),
  entries: z.array(z.object({ key: z.string(), xdr: xdrOf(xdr.LedgerEntryData) })).nullable(),
});
export type LedgerEntriesReply = z.infer<typeof entriesSchema>;

const latestLedgerSchema = z.object({ sequence: z.number(), closeTime: seconds.optional() });

const ledgersSchema = z.object({
  ledgers: z.array(z.object({ sequence: z.number(), ledgerCloseTime: seconds })),
});

const percentiles = z.record(z.string(), z.coerce.bigint());
const feeStatsSchema = z.object({
  latestLedger: z.number(),
  sorobanInclusionFee: percentiles,
});

const healthSchema = z.object({
  status: z.string(),
  latestLedger: z.number(),
  /** Not of every version of a node. */
  latestLedgerCloseTime: seconds.optional(),
  oldestLedger: z.number(),
});

const eventSchema = z.object({
  id: z.string(),
  type: z.string(),
  ledger: z.number(),
  ledgerClosedAt: z.string(),
  contractId: z.string().default(''),
  txHash: z.string(),
  topic: z
    .array(z.string())
    .nullish()
    .transform((topic) => topic ?? []),
  value: z.string(),
  transactionIndex: z.number().optional(),
  operationIndex: z.number().optional(),
});
const eventsSchema = z.object({
  ...ledgerRange,
  events: z
    // What is no event is handed on as it came: one of them must not cost its whole page.
    .array(eventSchema.or(z.unknown().transform((data) => data as z.infer<typeof eventSchema>)))
    .nullable()
    .transform((events) => events ?? []),
  cursor: z
    .string()
    .nullish()
    .transform((cursor) => cursor || null),
});
export type EventsReply = z.infer<typeof eventsSchema>;

export type Ask = Omit<CallOptions<unknown>, 'schema'>;

/** The methods that we use, each answer checked for its shape. */
export class SorobanRpc {
  constructor(readonly pool: RpcPool) {}

  async simulate(transactionXdr: string, ask: Ask): Promise<Simulation> {
    const params = { transaction: transactionXdr };
    return (await this.pool.call('simulateTransaction', params, { ...ask, schema: simulationSchema })).value;
  }

  /** One try: a later one may be refused because an earlier one went through. */
  send(envelopeXdr: string, ask: Ask): Promise<Answer<SendReply>> {
    return this.pool.call(
      'sendTransaction',
      { transaction: envelopeXdr },
      { ...ask, schema: sendSchema, once: true },
    );
  }

  transaction(hash: string, ask: Ask): Promise<Answer<TransactionReply>> {
    return this.pool.call('getTransaction', { hash }, { ...ask, schema: transactionSchema, isSound: true });
  }

  ledgerEntries(keys: readonly string[], ask: Ask): Promise<Answer<LedgerEntriesReply>> {
    return this.pool.call('getLedgerEntries', { keys }, { ...ask, schema: entriesSchema, isSound: true });
  }

  async latestLedger(ask: Ask): Promise<z.infer<typeof latestLedgerSchema>> {
    return (await this.pool.call('getLatestLedger', undefined, { ...ask, schema: latestLedgerSchema })).value;
  }

  /** When that ledger closed, Unix seconds. Rejects for one that the node doesn't keep, and for nodes without the method. */
  async closeTimeOf(ledger: number, ask: Ask): Promise<number | null> {
    const params = { startLedger: ledger, pagination: { limit: 1 } };
    const { value } = await this.pool.call('getLedgers', params, {
      ...ask,
      schema: ledgersSchema,
      isSound: true,
    });
    return value.ledgers.find(({ sequence }) => sequence === ledger)?.ledgerCloseTime ?? null;
  }

  /** Percentiles of the inclusion fees that Soroban transactions of late ledgers paid, stroops, by name (`p90`). */
  async feeStats(ask: Ask): Promise<Record<string, bigint>> {
    const { value } = await this.pool.call('getFeeStats', undefined, {
      ...ask,
      schema: feeStatsSchema,
      isSound: true,
    });
    return value.sorobanInclusionFee;
  }

  async range(
    only: Endpoint,
    signal: AbortSignal,
  ): Promise<{ oldest: number; latest: number; latestLedgerCloseTime?: string }> {
    const { value } = await this.pool.call('getHealth', undefined, { only, signal, schema: healthSchema });
    const { oldestLedger: oldest, latestLedger: latest, latestLedgerCloseTime: closeTime } = value;
    return {
      oldest,
      latest,
      ...(closeTime === undefined ? {} : { latestLedgerCloseTime: String(closeTime) }),
    };
  }

  events(params: Record<string, unknown>, ask: Ask): Promise<Answer<EventsReply>> {
    return this.pool.call('getEvents', params, { ...ask, schema: eventsSchema });
  }
}
