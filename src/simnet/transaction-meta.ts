import { xdr } from '@stellar/stellar-sdk';
import type { AppliedTransaction, EntryChange } from './ledger-history';
import { ledgerEntryOf } from './state';

/** Result metas that nodes have answered with: v3 before protocol 23, v4 since. */
export type MetaVersion = 3 | 4;

const extensionPoint = new xdr.ExtensionPoint(0);

const changesOf = (changes: EntryChange[], ledger: number): xdr.LedgerEntryChange[] =>
  changes.flatMap(({ before, after }) => {
    const entry = ledgerEntryOf(after, ledger);
    if (!before) return [xdr.LedgerEntryChange.ledgerEntryCreated(entry)];
    return [
      xdr.LedgerEntryChange.ledgerEntryState(ledgerEntryOf(before.record, before.lastModifiedLedger)),
      xdr.LedgerEntryChange.ledgerEntryUpdated(entry),
    ];
  });

/** The fee as an event of the transaction: it is taken before all transactions of the ledger. */
export const feeTransactionEvent = ({ feeEventXdr }: AppliedTransaction): xdr.TransactionEvent =>
  new xdr.TransactionEvent({
    stage: xdr.TransactionEventStage.transactionEventStageBeforeAllTxes(),
    event: xdr.ContractEvent.fromXDR(feeEventXdr, 'base64'),
  });

const contractEvents = ({ contractEventsXdr }: AppliedTransaction): xdr.ContractEvent[] =>
  contractEventsXdr.map((event) => xdr.ContractEvent.fromXDR(event, 'base64'));

const diagnosticEvents = ({ diagnosticEventsXdr }: AppliedTransaction): xdr.DiagnosticEvent[] =>
  diagnosticEventsXdr.map((event) => xdr.DiagnosticEvent.fromXDR(event, 'base64'));

const metaV3 = (applied: AppliedTransaction): xdr.TransactionMeta => {
  const { returnValue } = applied;
  const meta = new xdr.TransactionMetaV3({
    ext: extensionPoint,
    txChangesBefore: [],
    operations: operationChanges(applied).map((changes) => new xdr.OperationMeta({ changes })),
    txChangesAfter: [],
    sorobanMeta: applied.isSoroban
      ? new xdr.SorobanTransactionMeta({
          ext: new xdr.SorobanTransactionMetaExt(0),
          events: contractEvents(applied),
          returnValue: returnValue ?? xdr.ScVal.scvVoid(),
          diagnosticEvents: diagnosticEvents(applied),
        })
      : null,
  });
  return new xdr.TransactionMeta(3, meta);
};

const metaV4 = (applied: AppliedTransaction): xdr.TransactionMeta => {
  const { returnValue } = applied;
  const meta = new xdr.TransactionMetaV4({
    ext: extensionPoint,
    txChangesBefore: [],
    operations: operationChanges(applied).map(
      (changes, index) =>
        new xdr.OperationMetaV2({
          ext: extensionPoint,
          changes,
          events: index === 0 ? contractEvents(applied) : [],
        }),
    ),
    txChangesAfter: [],
    sorobanMeta: applied.isSoroban
      ? new xdr.SorobanTransactionMetaV2({
          ext: new xdr.SorobanTransactionMetaExt(0),
          returnValue: returnValue ?? null,
        })
      : null,
    events: [feeTransactionEvent(applied)],
    diagnosticEvents: diagnosticEvents(applied),
  });
  return new xdr.TransactionMeta(4, meta);
};

/** One list of changes an operation; the ledger keeps them for the transaction, so the first carries all. */
const operationChanges = ({
  operations,
  changes,
  ledger,
  successful,
}: AppliedTransaction): xdr.LedgerEntryChange[][] =>
  successful ? operations.map((_, index) => (index === 0 ? changesOf(changes, ledger) : [])) : [];

export const transactionMeta = (applied: AppliedTransaction, version: MetaVersion): xdr.TransactionMeta =>
  version === 3 ? metaV3(applied) : metaV4(applied);
