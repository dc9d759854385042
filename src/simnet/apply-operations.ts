import { createHash } from 'node:crypto';
import type { Operation } from '@stellar/stellar-sdk';
import { xdr } from '@stellar/stellar-sdk';
import { EnforcingAuth } from './auth';
import type { LedgerInfo, SorobanHost } from './soroban-host';
import { defaultLiveForLedgers, frameOf } from './soroban-host';
import type { StateOverlay } from './state';
import { minimumBalance } from './transaction-checks';
import type { TransactionFrame } from './transaction-frame';
import { plainAccount } from './transaction-frame';

const stroopsPerLumen = 10_000_000n;

export interface ApplyOutcome {
  successful: boolean;
  results: xdr.OperationResult[];
  returnValue?: xdr.ScVal;
  events: xdr.ContractEvent[];
  diagnosticEvents: xdr.DiagnosticEvent[];
}

interface OperationOutcome {
  successful: boolean;
  result: xdr.OperationResult;
  returnValue?: xdr.ScVal;
  events?: xdr.ContractEvent[];
  diagnosticEvents?: xdr.DiagnosticEvent[];
}

const inner = (result: xdr.OperationResultTr): xdr.OperationResult => xdr.OperationResult.opInner(result);

/** Runs a transaction's operations on an overlay, which the caller keeps only if all of them succeed. */
export const applyOperations = (
  frame: TransactionFrame,
  overlay: StateOverlay,
  ledger: LedgerInfo,
  host: SorobanHost,
): ApplyOutcome => {
  const outcomes = frame.operations.map((operation) =>
    applyOperation(operation, frame, overlay, ledger, host),
  );
  const returnValue = outcomes[0]?.returnValue;
  return {
    successful: outcomes.every(({ successful }) => successful),
    results: outcomes.map(({ result }) => result),
    ...(returnValue && { returnValue }),
    events: outcomes.flatMap(({ events }) => events ?? []),
    diagnosticEvents: outcomes.flatMap(({ diagnosticEvents }) => diagnosticEvents ?? []),
  };
};

const applyOperation = (
  operation: Operation,
  frame: TransactionFrame,
  overlay: StateOverlay,
  ledger: LedgerInfo,
  host: SorobanHost,
): OperationOutcome => {
  const source = plainAccount(operation.source ?? frame.source);
  switch (operation.type) {
    case 'createAccount':
      return createAccount(operation, source, overlay, ledger);
    case 'payment':
      return pay(operation, source, overlay);
    case 'invokeHostFunction':
      return invokeHostFunction(operation, source, overlay, ledger, host);
    case 'restoreFootprint':
      return restoreFootprint(frame, overlay, ledger);
    case 'extendFootprintTtl':
      return extendFootprint(operation, frame, overlay, ledger);
    default:
      return { successful: false, result: xdr.OperationResult.opNotSupported() };
  }
};

const stroops = (amount: string): bigint => {
  const [whole = '0', fraction = ''] = amount.split('.');
  return BigInt(whole) * stroopsPerLumen + BigInt(fraction.padEnd(7, '0'));
};

const createAccount = (
  operation: Operation.CreateAccount,
  source: string,
  overlay: StateOverlay,
  ledger: LedgerInfo,
): OperationOutcome => {
  const outcome = (successful: boolean, result: xdr.CreateAccountResult): OperationOutcome => ({
    successful,
    result: inner(xdr.OperationResultTr.createAccount(result)),
  });
  const amount = stroops(operation.startingBalance);
  const payer = overlay.account(source);
  if (overlay.account(operation.destination)) {
    return outcome(false, xdr.CreateAccountResult.createAccountAlreadyExist());
  }
  if (amount < minimumBalance) return outcome(false, xdr.CreateAccountResult.createAccountLowReserve());
  if (!payer || payer.balance - minimumBalance < amount) {
    return outcome(false, xdr.CreateAccountResult.createAccountUnderfunded());
  }
  overlay.write({ ...payer, balance: payer.balance - amount });
  overlay.write({
    kind: 'account',
    accountId: operation.destination,
    balance: amount,
    // As in the protocol: a re-created account can't repeat old sequence numbers.
    sequence: BigInt(ledger.sequence) << 32n,
  });
  return outcome(true, xdr.CreateAccountResult.createAccountSuccess());
};

const pay = (operation: Operation.Payment, source: string, overlay: StateOverlay): OperationOutcome => {
  const outcome = (successful: boolean, result: xdr.PaymentResult): OperationOutcome => ({
    successful,
    result: inner(xdr.OperationResultTr.payment(result)),
  });
  if (!operation.asset.isNative()) return outcome(false, xdr.PaymentResult.paymentSrcNoTrust());
  const amount = stroops(operation.amount);
  const payer = overlay.account(source);
  if (!payer || payer.balance - minimumBalance < amount) {
    return outcome(false, xdr.PaymentResult.paymentUnderfunded());
  }
  const destination = plainAccount(operation.destination);
  if (!overlay.account(destination)) return outcome(false, xdr.PaymentResult.paymentNoDestination());
  overlay.write({ ...payer, balance: payer.balance - amount });
  const receiver = overlay.account(destination);
  if (receiver) overlay.write({ ...receiver, balance: receiver.balance + amount });
  return outcome(true, xdr.PaymentResult.paymentSuccess());
};

const invokeHostFunction = (
  operation: Operation.InvokeHostFunction,
  source: string,
  overlay: StateOverlay,
  ledger: LedgerInfo,
  host: SorobanHost,
): OperationOutcome => {
  const failed = (result: xdr.InvokeHostFunctionResult): OperationOutcome => ({
    successful: false,
    result: inner(xdr.OperationResultTr.invokeHostFunction(result)),
  });
  const frame = frameOf(operation.func);
  if (!frame) return failed(xdr.InvokeHostFunctionResult.invokeHostFunctionMalformed());

  const { result, events, diagnosticEvents } = host.invoke({
    frame,
    overlay,
    ledger,
    auth: () => new EnforcingAuth(operation.auth ?? [], source, host.networkId, overlay),
    archived: 'refuse',
  });
  switch (result.kind) {
    case 'archived':
      return failed(xdr.InvokeHostFunctionResult.invokeHostFunctionEntryArchived());
    case 'trapped':
      return { ...failed(xdr.InvokeHostFunctionResult.invokeHostFunctionTrapped()), diagnosticEvents };
    case 'returned': {
      const preimage = new xdr.InvokeHostFunctionSuccessPreImage({ returnValue: result.value, events });
      const success = xdr.InvokeHostFunctionResult.invokeHostFunctionSuccess(
        createHash('sha256').update(preimage.toXDR()).digest(),
      );
      return {
        successful: true,
        result: inner(xdr.OperationResultTr.invokeHostFunction(success)),
        returnValue: result.value,
        events,
        diagnosticEvents,
      };
    }
  }
};

/** Contract data entries among the keys of a footprint, live or not. */
const footprintRecords = (keys: xdr.LedgerKey[], overlay: StateOverlay) =>
  keys.flatMap((key) => {
    const record = overlay.read(key.toXDR('base64'))?.record;
    return record?.kind === 'contractData' ? [record] : [];
  });

const restoreFootprint = (
  { sorobanData }: TransactionFrame,
  overlay: StateOverlay,
  ledger: LedgerInfo,
): OperationOutcome => {
  for (const record of footprintRecords(sorobanData?.resources().footprint().readWrite() ?? [], overlay)) {
    if (record.durability === 'persistent' && record.liveUntilLedger < ledger.sequence) {
      overlay.write({ ...record, liveUntilLedger: ledger.sequence + defaultLiveForLedgers });
    }
  }
  const result = xdr.RestoreFootprintResult.restoreFootprintSuccess();
  return { successful: true, result: inner(xdr.OperationResultTr.restoreFootprint(result)) };
};

const extendFootprint = (
  { extendTo }: Operation.ExtendFootprintTTL,
  { sorobanData }: TransactionFrame,
  overlay: StateOverlay,
  ledger: LedgerInfo,
): OperationOutcome => {
  for (const record of footprintRecords(sorobanData?.resources().footprint().readOnly() ?? [], overlay)) {
    const isLive = record.liveUntilLedger >= ledger.sequence;
    const liveUntilLedger = Math.max(record.liveUntilLedger, ledger.sequence + extendTo);
    if (isLive) overlay.write({ ...record, liveUntilLedger });
  }
  const result = xdr.ExtendFootprintTtlResult.extendFootprintTtlSuccess();
  return { successful: true, result: inner(xdr.OperationResultTr.extendFootprintTtl(result)) };
};
