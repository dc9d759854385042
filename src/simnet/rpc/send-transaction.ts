import { z } from 'zod';
import { baseFeeStroops, parseTransaction } from '../transaction-frame';
import { rejectionResult } from '../transaction-result';
import type { RpcMethod } from './rpc-context';
import { invalidParams } from './rpc-context';

const paramsSchema = z.object({ transaction: z.string() });

export const sendTransaction: RpcMethod = (params, { ledger, view, stats, networkPassphrase, injected }) => {
  const parsed = paramsSchema.safeParse(params);
  const frame = parsed.success ? parseTransaction(parsed.data.transaction, networkPassphrase) : undefined;
  if (!frame) throw invalidParams('invalid_xdr');

  const { latestLedger, latestLedgerCloseTime } = view.window();
  const answer = (status: string, more: object = {}) => ({
    ...more,
    status,
    hash: frame.hash,
    latestLedger,
    latestLedgerCloseTime,
  });
  if (injected?.kind === 'tryAgainLater') return answer('TRY_AGAIN_LATER');
  if (injected?.kind === 'sendError') {
    return answer('ERROR', {
      errorResultXdr: rejectionResult(frame, { code: injected.code, feeCharged: baseFeeStroops }).toXDR(
        'base64',
      ),
    });
  }

  const result = ledger.submit(frame);
  switch (result.kind) {
    case 'pending':
      stats.accepted += 1;
      return answer('PENDING');
    case 'duplicate':
      stats.duplicates += 1;
      return answer('DUPLICATE');
    case 'tryAgainLater':
      stats.tryAgainLater += 1;
      return answer('TRY_AGAIN_LATER');
    case 'error': {
      stats.countRejection(result.rejection.code);
      return answer('ERROR', { errorResultXdr: rejectionResult(frame, result.rejection).toXDR('base64') });
    }
  }
};
