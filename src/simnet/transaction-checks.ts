import { StrKey } from '@stellar/stellar-sdk';
import type { xdr } from '@stellar/stellar-sdk';
import { verifyEd25519 } from './ed25519';
import { memoized } from './memoized';
import { minimumResourceFee } from './resource-fee';
import type { AccountRecord } from './state';
import type { TransactionFrame } from './transaction-frame';
import { baseFeeStroops, plainAccount } from './transaction-frame';
import type { Rejection, RejectionCode } from './transaction-result';

/** Two base reserves of 0.5 XLM: an account keeps that much. */
export const minimumBalance = 10_000_000n;

export interface CheckContext {
  account(publicKey: string): AccountRecord | undefined;
  /** Epoch seconds. */
  closeTimeSeconds: number;
}

const reject = (code: RejectionCode, feeCharged = baseFeeStroops): Rejection => ({ code, feeCharged });

/** The node's own validity checks, in the order of stellar-core: the first failure is what the sender hears. */
export const checkTransaction = (frame: TransactionFrame, context: CheckContext): Rejection | undefined => {
  if (!frame.feeBump) {
    return (
      checkShape(frame) ??
      checkTimeBounds(frame, context) ??
      checkFee(frame) ??
      checkSequence(frame, context) ??
      checkInnerSignatures(frame) ??
      checkPayer(frame, context)
    );
  }
  // A fee bump is judged for itself first, and then what it wraps.
  const outer = checkFee(frame) ?? checkFeeBumpSignatures(frame) ?? checkPayer(frame, context);
  if (outer) return outer;
  const inner =
    checkShape(frame) ??
    checkTimeBounds(frame, context) ??
    checkSequence(frame, context) ??
    checkInnerSignatures(frame);
  return inner && { ...inner, isInner: true };
};

const checkShape = (frame: TransactionFrame): Rejection | undefined => {
  if (frame.operations.length === 0) return reject('txMissingOperation');
  if (!frame.isSoroban) return frame.sorobanData ? reject('txMalformed') : undefined;
  // A Soroban transaction is one operation, and says what it will touch.
  if (frame.operations.length > 1 || !frame.sorobanData) return reject('txMalformed');
  const needed = minimumResourceFee(frame.sorobanData.resources());
  if (frame.resourceFee < needed || frame.resourceFee > frame.fullFee)
    return reject('txSorobanInvalid', needed);
  return undefined;
};

const checkTimeBounds = (
  frame: TransactionFrame,
  { closeTimeSeconds }: CheckContext,
): Rejection | undefined => {
  if (frame.minTime > closeTimeSeconds) return reject('txTooEarly');
  if (frame.maxTime !== 0 && frame.maxTime < closeTimeSeconds) return reject('txTooLate');
  return undefined;
};

const checkFee = (frame: TransactionFrame): Rejection | undefined => {
  const needed = baseFeeStroops * frame.feeOperations;
  if (frame.inclusionFee < needed) return reject('txInsufficientFee', needed + frame.resourceFee);
  if (!frame.feeBump) return undefined;
  const innerFee = BigInt(frame.transaction.fee) - frame.resourceFee;
  const innerOperations = BigInt(frame.operations.length);
  // A fee bump may not bid less per operation than what it wraps.
  if (frame.inclusionFee * innerOperations < innerFee * frame.feeOperations) {
    const rounded = (innerFee * frame.feeOperations + innerOperations - 1n) / innerOperations;
    return reject('txInsufficientFee', rounded + frame.resourceFee);
  }
  return undefined;
};

const checkSequence = (frame: TransactionFrame, context: CheckContext): Rejection | undefined => {
  const account = context.account(frame.source);
  if (!account) return reject('txNoAccount');
  return account.sequence + 1n === frame.sequence ? undefined : reject('txBadSeq');
};

const checkFeeBumpSignatures = ({ feeBump, feeSource }: TransactionFrame): Rejection | undefined => {
  const code = feeBump && signedOnlyBy(feeBump.signatures, feeBump.hash(), new Set([feeSource]));
  return code && reject(code);
};

const checkInnerSignatures = ({
  transaction,
  source,
  operations,
}: TransactionFrame): Rejection | undefined => {
  const operationSources = operations.flatMap((operation) =>
    operation.source ? [plainAccount(operation.source)] : [],
  );
  const signers = new Set([source, ...operationSources]);
  const code = signedOnlyBy(transaction.signatures, transaction.hash(), signers);
  return code && reject(code);
};

const rawKeyOf = memoized((publicKey) => Buffer.from(StrKey.decodeEd25519PublicKey(publicKey)));

/** The simulated accounts have their master key only, so each signer is one key. */
const signedOnlyBy = (
  signatures: xdr.DecoratedSignature[],
  hash: Buffer,
  signers: Set<string>,
): RejectionCode | undefined => {
  const missing = new Set(signers);
  for (const decorated of signatures) {
    const signer = [...signers].find(
      (candidate) =>
        rawKeyOf(candidate).subarray(-4).equals(decorated.hint()) &&
        verifyEd25519(rawKeyOf(candidate), hash, decorated.signature()),
    );
    if (!signer) return missing.size > 0 ? 'txBadAuth' : 'txBadAuthExtra';
    missing.delete(signer);
  }
  return missing.size > 0 ? 'txBadAuth' : undefined;
};

const checkPayer = (frame: TransactionFrame, context: CheckContext): Rejection | undefined => {
  const payer = context.account(frame.feeSource);
  if (!payer) return reject('txNoAccount');
  if (payer.balance - minimumBalance < frame.fullFee) return reject('txInsufficientBalance');
  return undefined;
};
