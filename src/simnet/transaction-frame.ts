import type { Operation, Transaction } from '@stellar/stellar-sdk';
import { FeeBumpTransaction, MuxedAccount, StrKey, TransactionBuilder, xdr } from '@stellar/stellar-sdk';

/** The protocol's minimum per operation, in stroops; a fee bump counts as one operation more. */
export const baseFeeStroops = 100n;

const sorobanOperations = new Set(['invokeHostFunction', 'restoreFootprint', 'extendFootprintTtl']);

/** A decoded envelope with the figures that the queue and the ledger ask for. */
export interface TransactionFrame {
  readonly envelope: xdr.TransactionEnvelope;
  /** Hex hash of what was sent: of the outer transaction when it is a fee bump. */
  readonly hash: string;
  readonly transaction: Transaction;
  readonly feeBump?: FeeBumpTransaction;
  readonly innerHash?: string;
  /** Whose sequence number is used. */
  readonly source: string;
  /** Who pays. */
  readonly feeSource: string;
  readonly sequence: bigint;
  readonly operations: readonly Operation[];
  /** Operations that count for the fee. */
  readonly feeOperations: bigint;
  readonly isSoroban: boolean;
  readonly sorobanData?: xdr.SorobanTransactionData;
  /** Stroops: what is bid in all, the declared resource part of it, and the rest, which competes for inclusion. */
  readonly fullFee: bigint;
  readonly resourceFee: bigint;
  readonly inclusionFee: bigint;
  /** Epoch seconds, 0 for none. */
  readonly minTime: number;
  readonly maxTime: number;
}

export const plainAccount = (address: string): string =>
  address.startsWith('M') && StrKey.isValidMed25519PublicKey(address)
    ? MuxedAccount.fromAddress(address, '0').baseAccount().accountId()
    : address;

const sorobanDataOf = (envelope: xdr.TransactionEnvelope): xdr.SorobanTransactionData | undefined => {
  const inner =
    envelope.switch().name === 'envelopeTypeTxFeeBump'
      ? envelope.feeBump().tx().innerTx().v1()
      : envelope.v1();
  const ext = inner.tx().ext();
  return ext.switch() === 1 ? ext.sorobanData() : undefined;
};

/** Decodes base64 XDR; undefined when it is not an envelope that the network takes. */
export const parseTransaction = (
  envelopeXdr: string,
  networkPassphrase: string,
): TransactionFrame | undefined => {
  try {
    const envelope = xdr.TransactionEnvelope.fromXDR(envelopeXdr, 'base64');
    if (envelope.switch().name === 'envelopeTypeTxV0') return undefined;
    return frameOfEnvelope(envelope, TransactionBuilder.fromXDR(envelopeXdr, networkPassphrase));
  } catch {
    return undefined;
  }
};

export const frameOfTransaction = (transaction: Transaction): TransactionFrame =>
  frameOfEnvelope(transaction.toEnvelope(), transaction);

const frameOfEnvelope = (
  envelope: xdr.TransactionEnvelope,
  parsed: Transaction | FeeBumpTransaction,
): TransactionFrame => {
  const feeBump = parsed instanceof FeeBumpTransaction ? parsed : undefined;
  const transaction = parsed instanceof FeeBumpTransaction ? parsed.innerTransaction : parsed;
  const sorobanData = sorobanDataOf(envelope);
  const fullFee = BigInt(parsed.fee);
  const resourceFee = sorobanData?.resourceFee().toBigInt() ?? 0n;
  return {
    envelope,
    hash: parsed.hash().toString('hex'),
    transaction,
    ...(feeBump && { feeBump, innerHash: transaction.hash().toString('hex') }),
    source: plainAccount(transaction.source),
    feeSource: plainAccount(feeBump?.feeSource ?? transaction.source),
    sequence: BigInt(transaction.sequence),
    operations: transaction.operations,
    feeOperations: BigInt(transaction.operations.length + (feeBump ? 1 : 0)),
    isSoroban: transaction.operations.some((operation) => sorobanOperations.has(operation.type)),
    ...(sorobanData && { sorobanData }),
    fullFee,
    resourceFee,
    inclusionFee: fullFee - resourceFee,
    minTime: Number(transaction.timeBounds?.minTime ?? 0),
    maxTime: Number(transaction.timeBounds?.maxTime ?? 0),
  };
};

/** Inclusion fee per operation, rounded down: what surge pricing compares. */
export const feeRate = (frame: TransactionFrame): bigint => frame.inclusionFee / (frame.feeOperations || 1n);
