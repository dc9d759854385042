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

const innerRejections: Record<RejectionCode, () => xdr.InnerTransactionResultResult> = {
  txTooEarly: () => xdr.InnerTransactionResultResult.txTooEarly(),
  txTooLate: () => xdr.InnerTransactionResultResult.txTooLate(),
  txMissingOperation: () => xdr.InnerTransactionResultResult.txMissingOperation(),
  txBadSeq: () => xdr.InnerTransactionResultResult.txBadSeq(),
  txBadAuth: () => xdr.InnerTransactionResultResult.txBadAuth(),
  txInsufficientBalance: () => xdr.InnerTransactionResultResult.txInsufficientBalance(),
  txNoAccount: () => xdr.InnerTransactionResultResult.txNoAccount(),
  txInsufficientFee: () => xdr.InnerTransactionResultResult.txInsufficientFee(),
  txBadAuthExtra: () => xdr.InnerTransactionResultResult.txBadAuthExtra(),
  txInternalError: () => xdr.InnerTransactionResultResult.txInternalError(),
  txMalformed: () => xdr.InnerTransactionResultResult.txMalformed(),
  txSorobanInvalid: () => xdr.InnerTransactionResultResult.txSorobanInvalid(),
};

export interface Rejection {
  code: RejectionCode;
  /** Stroops; for txInsufficientFee the fee that would be needed. */
  feeCharged: bigint;
  /** The fault is in what a fee bump wraps: told as txFEE_BUMP_INNER_FAILED around the code. */
  isInner?: boolean;
}

export const rejectionResult = (frame: TransactionFrame, rejection: Rejection): xdr.TransactionResult => {
  const { code, feeCharged, isInner = false } = rejection;
  if (!isInner || !frame.innerHash) return resultOf(feeCharged, rejections[code]());
  const pair = innerResultPair(frame.innerHash, innerRejections[code]());
  return resultOf(feeCharged, xdr.TransactionResultResult.txFeeBumpInnerFailed(pair));
};

/** The fee bump pays for both, so the inner transaction is charged nothing. */
const innerResultPair = (
  innerHash: string,
  result: xdr.InnerTransactionResultResult,
): xdr.InnerTransactionResultPair =>
  new xdr.InnerTransactionResultPair({
    transactionHash: Buffer.from(innerHash, 'hex'),
    result: new xdr.InnerTransactionResult({
      feeCharged: xdr.Int64.fromString('0'),
      result,
      ext: new xdr.InnerTransactionResultExt(0),
    }),
  });

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
  const pair = innerResultPair(
    frame.innerHash,
    successful
      ? xdr.InnerTransactionResultResult.txSuccess(operations)
      : xdr.InnerTransactionResultResult.txFailed(operations),
  );
  const result = successful
    ? xdr.TransactionResultResult.txFeeBumpInnerSuccess(pair)
    : xdr.TransactionResultResult.txFeeBumpInnerFailed(pair);
  return resultOf(feeCharged, result);
};
