import { z } from 'zod';
import type { RpcMethod } from './rpc-context';
import { invalidParams, RpcFailure, rpcErrorCodes } from './rpc-context';
import { transactionInfo } from './get-transaction';

const maxLimit = 200;
const defaultLimit = 50;

const paramsSchema = z.object({
  startLedger: z.int().nonnegative().optional(),
  pagination: z
    .object({ cursor: z.string().regex(/^\d*$/).optional(), limit: z.int().nonnegative().optional() })
    .optional(),
});

/** Position of a transaction, as the decimal TOID that this method uses for a cursor. */
const toid = (ledger: number, order: number): bigint => (BigInt(ledger) << 32n) | (BigInt(order) << 12n) | 1n;

export const getTransactions: RpcMethod = (params, { view, ledger, metaVersion }) => {
  const parsed = paramsSchema.safeParse(params);
  if (!parsed.success) throw invalidParams(z.prettifyError(parsed.error));
  const { startLedger = 0, pagination } = parsed.data;
  const cursor = pagination?.cursor ? BigInt(pagination.cursor) : undefined;
  if (cursor !== undefined && startLedger !== 0)
    throw invalidParams('startLedger and cursor cannot both be set');
  const limit = pagination?.limit ?? defaultLimit;
  if (limit > maxLimit) throw invalidParams(`limit must not exceed ${maxLimit}`);
  const start = cursor === undefined ? startLedger : Number(cursor >> 32n);
  if (start < view.oldestLedger || start > view.latestLedger) {
    throw new RpcFailure(
      rpcErrorCodes.invalidRequest,
      `start ledger (${start}) must be between the oldest ledger: ${view.oldestLedger} and the latest ledger: ${view.latestLedger} for this rpc instance`,
    );
  }

  const found = [];
  let last = cursor ?? toid(start, 0);
  for (let sequence = start; sequence <= view.latestLedger && found.length < limit; sequence += 1) {
    const transactions = view.isForeign ? [] : (ledger.history.at(sequence)?.transactions ?? []);
    for (const applied of transactions) {
      const position = toid(sequence, applied.applicationOrder);
      if (position <= last || found.length >= limit) continue;
      found.push({
        ...transactionInfo(applied, metaVersion),
        txHash: applied.hash,
        createdAt: applied.closeTimeSeconds,
      });
      last = position;
    }
  }
  return {
    transactions: found,
    latestLedger: view.latestLedger,
    latestLedgerCloseTimestamp: view.latest.closeTimeSeconds,
    oldestLedger: view.oldestLedger,
    oldestLedgerCloseTimestamp: view.oldest.closeTimeSeconds,
    cursor: String(last),
  };
};
