import { z } from 'zod';
import type { AppliedTransaction } from '../ledger-history';
import type { MetaVersion } from '../transaction-meta';
import { feeTransactionEvent, transactionMeta } from '../transaction-meta';
import type { RpcMethod } from './rpc-context';
import { invalidParams } from './rpc-context';

const paramsSchema = z.object({ hash: z.string() });

/** The fields that getTransaction and getTransactions share. */
export const transactionInfo = (applied: AppliedTransaction, metaVersion: MetaVersion) => {
  const { diagnosticEventsXdr, contractEventsXdr } = applied;
  return {
    status: applied.successful ? 'SUCCESS' : 'FAILED',
    applicationOrder: applied.applicationOrder,
    feeBump: applied.innerHash !== undefined,
    envelopeXdr: applied.envelopeXdr,
    resultXdr: applied.resultXdr,
    resultMetaXdr: transactionMeta(applied, metaVersion).toXDR('base64'),
    ...(diagnosticEventsXdr.length > 0 && { diagnosticEventsXdr }),
    events: {
      transactionEventsXdr: [feeTransactionEvent(applied).toXDR('base64')],
      ...(applied.successful && applied.isSoroban && { contractEventsXdr: [contractEventsXdr] }),
    },
    ledger: applied.ledger,
  };
};

export const getTransaction: RpcMethod = (params, { view, metaVersion }) => {
  const parsed = paramsSchema.safeParse(params);
  if (!parsed.success) throw invalidParams('hash is missing');
  const { hash } = parsed.data;
  if (hash.length !== 64) throw invalidParams(`unexpected hash length (${hash.length})`);
  if (!/^[0-9a-f]{64}$/i.test(hash)) throw invalidParams('incorrect hash: not hexadecimal');

  const applied = view.transaction(hash.toLowerCase());
  if (!applied) return { ...view.window(), status: 'NOT_FOUND', txHash: hash };
  return {
    ...view.window(),
    ...transactionInfo(applied, metaVersion),
    txHash: hash,
    createdAt: String(applied.closeTimeSeconds),
  };
};
