import { xdr } from '@stellar/stellar-sdk';
import type { TransactionFrame } from './transaction-frame';

/** Why a transaction never reaches a ledger, by the names of the XDR union. */
export const rejectionCodes = [
  'txTooEarly',
  'txTooLate',
  'txMissingOperation',
  'txBadSeq',
  'txBadAuth',
  'txInsufficientBalance',
  'txNoAccount',
  'txInsufficientFee',
  'txBadAuthExtra',
  'txInternalError',
  'txMalformed',
  'txSorobanInvalid',
] as const;
export type RejectionCode = (typeof rejectionCodes)[number];

const rejections: Record<RejectionCode, () => xdr.TransactionResultResult> = {
  txTooEarly: () => xdr.TransactionResultResult.txTooEarly(),
  txTooLate: () => xdr.TransactionResultResult.txTooLate(),
  txMissingOperation: () => xdr.TransactionResultResult.txMissingOperation(),
  txBadSeq: () => xdr.TransactionResultResult.txBadSeq(),
  txBadAuth: () => xdr.TransactionResultResult.txBadAuth(),
  txInsufficientBalance: () => xdr.TransactionResultResult.txInsufficientBalance(),
  txNoAccount: () => xdr.TransactionResultResult.txNoAccount(),
  txInsufficientFee: () => xdr.TransactionResultResult.txInsufficientFee(),
  txBadAuthExtra: () => xdr.TransactionResultResult.txBadAuthExtra(),
  txInternalError: () => xdr.TransactionResultResult.txInternalError(),
  txMalformed: () => xdr.TransactionResultResult.txMalformed(),
  txSorobanInvalid: () => xdr.TransactionResultResult.txSorobanInvalid(),
};

const resultOf = (feeCharged: bigint, result: xdr.TransactionResultResult): xdr.TransactionResult =>
  new xdr.TransactionResult({
    feeCharged: xdr.Int64.fromString(feeCharged.toString()),
    result,
    ext: new xdr.TransactionResultExt(0),
  });

export const rejectionResult = (code: RejectionCode, feeCharged: bigint): xdr.TransactionResult =>
  resultOf(feeCharged, rejections[code]());

/** The result of a transaction that is in a ledger; a fee bump wraps the result of its inner transaction. */
export const ledgerResult = (
  frame: TransactionFrame,
  feeCharged: bigint,
  successful: boolean,
  operations: xdr.OperationResult[],
): xdr.TransactionResult => {
  if (!frame.innerHash) {
    const result = successful
      ? xdr.TransactionResultResult.txSuccess(operations)
      : xdr.TransactionResultResult.txFailed(operations);
    return resultOf(feeCharged, result);
  }
  const pair = new xdr.InnerTransactionResultPair({
    transactionHash: Buffer.from(frame.innerHash, 'hex'),
    result: new xdr.InnerTransactionResult({
      // The fee bump pays for both, so the inner transaction is charged nothing.
      feeCharged: xdr.Int64.fromString('0'),
      result: successful
        ? xdr.InnerTransactionResultResult.txSuccess(operations)
        : xdr.InnerTransactionResultResult.txFailed(operations),
      ext: new xdr.InnerTransactionResultExt(0),
    }),
  });
  const result = successful
    ? xdr.TransactionResultResult.txFeeBumpInnerSuccess(pair)
    : xdr.TransactionResultResult.txFeeBumpInnerFailed(pair);
  return resultOf(feeCharged, result);
};
