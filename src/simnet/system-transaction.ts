import type { Keypair } from '@stellar/stellar-sdk';
import { Account, SorobanDataBuilder, TransactionBuilder } from '@stellar/stellar-sdk';
import type { xdr } from '@stellar/stellar-sdk';
import type { AppliedTransaction } from './ledger-history';
import { minimumResourceFee } from './resource-fee';
import type { TransactionFrame } from './transaction-frame';
import { baseFeeStroops, frameOfTransaction } from './transaction-frame';

/**
 * A transaction of the network's own accounts. It stands in the next ledger ahead of the queue,
 * and one account may have several there, which no client could have.
 */
export interface SystemTransaction {
  source: Keypair;
  operation: xdr.Operation;
  landed: (applied: AppliedTransaction) => void;
}

export const signedSystemFrame = (
  { source, operation }: SystemTransaction,
  sequence: bigint,
  networkPassphrase: string,
): TransactionFrame => {
  const builder = new TransactionBuilder(new Account(source.publicKey(), sequence.toString()), {
    fee: baseFeeStroops.toString(),
    networkPassphrase,
  })
    .addOperation(operation)
    .setTimeout(0);
  if (operation.body().switch().name === 'invokeHostFunction') {
    const data = new SorobanDataBuilder();
    const fee = minimumResourceFee(data.build().resources());
    builder.setSorobanData(data.setResourceFee(fee).build());
  }
  const transaction = builder.build();
  transaction.sign(source);
  return frameOfTransaction(transaction);
};
