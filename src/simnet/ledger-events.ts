import { StrKey, xdr } from '@stellar/stellar-sdk';
import { eventId } from './event-id';
import type { AppliedTransaction, StoredEvent } from './ledger-history';

const storedEvent = (
  applied: AppliedTransaction,
  eventXdr: string,
  transactionIndex: number,
  eventIndex: number,
): StoredEvent => {
  const { ledger, closeTimeSeconds, successful, hash } = applied;
  const event = xdr.ContractEvent.fromXDR(eventXdr, 'base64');
  const body = event.body().v0();
  const contractId = event.contractId();
  return {
    id: eventId({ ledger, transaction: transactionIndex, operation: 0, event: eventIndex }),
    ledger,
    closeTimeSeconds,
    contractId: contractId ? StrKey.encodeContract(contractId as unknown as Buffer) : '',
    transactionIndex,
    operationIndex: 0,
    inSuccessfulContractCall: successful,
    topics: body.topics().map((topic) => topic.toXDR('base64')),
    value: body.data().toXDR('base64'),
    txHash: hash,
  };
};

/** The events of one ledger in the order of their ids. Fees are taken before all transactions: position 0. */
export const eventsOfLedger = (applied: AppliedTransaction[]): StoredEvent[] => [
  ...applied.map((entry, index) => storedEvent(entry, entry.feeEventXdr, 0, index)),
  ...applied.flatMap((entry) =>
    entry.contractEventsXdr.map((event, index) => storedEvent(entry, event, entry.applicationOrder, index)),
  ),
];
