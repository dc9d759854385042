import { xdr } from '@stellar/stellar-sdk';
import { z } from 'zod';
import { ledgerEntryDataOf } from '../state';
import type { RpcMethod } from './rpc-context';
import { invalidParams } from './rpc-context';

const maxKeys = 200;
const paramsSchema = z.object({ keys: z.array(z.string()) });

const keyTypeOf = (key: string): string => {
  try {
    return xdr.LedgerKey.fromXDR(key, 'base64').switch().name;
  } catch {
    throw invalidParams(`cannot unmarshal key value ${key}`);
  }
};

/** Accounts and contract data. An archived entry is told with the ledger it lived until; a past temporary one is gone. */
export const getLedgerEntries: RpcMethod = (params, { ledger, view }) => {
  const parsed = paramsSchema.safeParse(params);
  if (!parsed.success) throw invalidParams('keys must be a list of base64 ledger keys');
  const { keys } = parsed.data;
  if (keys.length > maxKeys)
    throw invalidParams(`key count (${keys.length}) exceeds maximum supported (${maxKeys})`);

  const state = ledger.state.asOf(view.latest.sequence);
  const entries = keys.flatMap((key) => {
    if (keyTypeOf(key) === 'ttl') throw invalidParams('ledger ttl entries cannot be queried directly');
    const stored = state.read(key);
    if (!stored) return [];
    const { record, lastModifiedLedger } = stored;
    const liveUntil = record.kind === 'contractData' ? record.liveUntilLedger : undefined;
    const isGone =
      record.kind === 'contractData' &&
      record.durability === 'temporary' &&
      record.liveUntilLedger < view.latest.sequence;
    if (isGone) return [];
    return [
      {
        key,
        xdr: ledgerEntryDataOf(record).toXDR('base64'),
        lastModifiedLedgerSeq: lastModifiedLedger,
        ...(liveUntil !== undefined && { liveUntilLedgerSeq: liveUntil }),
      },
    ];
  });
  return { entries, latestLedger: view.latestLedger };
};
