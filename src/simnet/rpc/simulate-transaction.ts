import { SorobanDataBuilder, xdr } from '@stellar/stellar-sdk';
import type { Operation } from '@stellar/stellar-sdk';
import { z } from 'zod';
import { EnforcingAuth, RecordingAuth } from '../auth';
import { minimumResourceFee } from '../resource-fee';
import type { InvocationOutcome } from '../soroban-host';
import { frameOf } from '../soroban-host';
import type { StateKey } from '../state';
import { ledgerEntryOf, StateOverlay } from '../state';
import type { TransactionFrame } from '../transaction-frame';
import { parseTransaction, plainAccount } from '../transaction-frame';
import type { RpcContext, RpcMethod } from './rpc-context';
import { invalidParams } from './rpc-context';

const paramsSchema = z.object({ transaction: z.string() });

/** Instructions that a simulated call is said to need. */
const instructions = 2_000_000;

const keyOf = (key: StateKey): xdr.LedgerKey => xdr.LedgerKey.fromXDR(key, 'base64');

const dataOf = (
  footprint: { readOnly: StateKey[]; readWrite: StateKey[] },
  writeBytes: number,
): { data: string; fee: string } => {
  const builder = new SorobanDataBuilder()
    .setFootprint(footprint.readOnly.map(keyOf), footprint.readWrite.map(keyOf))
    .setResources(instructions, 0, writeBytes);
  const fee = minimumResourceFee(builder.build().resources());
  return { data: builder.setResourceFee(fee).build().toXDR('base64'), fee: fee.toString() };
};

const stateChangesOf = (overlay: StateOverlay) =>
  overlay.changes().map(({ key, before, after }) => ({
    type: before ? 'updated' : 'created',
    key,
    before: before ? ledgerEntryOf(before.record, before.lastModifiedLedger).toXDR('base64') : null,
    after: ledgerEntryOf(after, overlay.ledger).toXDR('base64'),
  }));

const writtenBytes = (overlay: StateOverlay): number =>
  overlay.changes().reduce((sum, { after }) => sum + ledgerEntryOf(after, overlay.ledger).toXDR().length, 0);

/** The text that the host prints for a trap, with its event log. */
const errorText = (
  outcome: InvocationOutcome & { result: { kind: 'trapped' } },
  contractId: string,
  name: string,
): string => {
  const { error } = outcome.result;
  return [
    `HostError: ${error.label}`,
    '',
    'Event log (newest first):',
    `   0: [Diagnostic Event] contract:${contractId}, topics:[error, ${error.label}], data:["${error.detail}", ${name}]`,
    `   1: [Diagnostic Event] topics:[fn_call, ${contractId}, ${name}]`,
    '',
  ].join('\n');
};

const isTrapped = (
  outcome: InvocationOutcome,
): outcome is InvocationOutcome & { result: { kind: 'trapped' } } => outcome.result.kind === 'trapped';

const simulateInvocation = (
  operation: Operation.InvokeHostFunction,
  frame: TransactionFrame,
  context: RpcContext,
) => {
  const { ledger, view } = context;
  const call = frameOf(operation.func);
  if (!call) return { error: 'uploads and deployments are not simulated', latestLedger: view.latestLedger };

  const sequence = view.latest.sequence + 1;
  const overlay = new StateOverlay(ledger.state.asOf(view.latest.sequence), sequence);
  const source = plainAccount(operation.source ?? frame.source);
  const recording = new RecordingAuth(source);
  const given = operation.auth ?? [];
  const outcome = ledger.host.invoke({
    frame: call,
    overlay,
    ledger: { sequence, closeTimeSeconds: view.latest.closeTimeSeconds },
    // Entries that are there are enforced; without any, what is needed is recorded.
    auth: () =>
      given.length > 0 ? new EnforcingAuth(given, source, ledger.host.networkId, overlay) : recording,
    archived: 'report',
  });
  const events = outcome.diagnosticEvents.map((event) => event.toXDR('base64'));
  if (isTrapped(outcome)) {
    return {
      error: errorText(outcome, call.contractId, call.functionName),
      events,
      latestLedger: view.latestLedger,
    };
  }
  if (outcome.result.kind !== 'returned')
    throw new Error('simulation reports archived entries and does not stop at them');

  const { data, fee } = dataOf(
    { readOnly: overlay.readOnlyKeys(), readWrite: overlay.writtenKeys() },
    writtenBytes(overlay),
  );
  const auth = given.length > 0 ? given : recording.entries();
  const archived = outcome.archivedKeys;
  const preamble = archived.length > 0 ? dataOf({ readOnly: [], readWrite: archived }, 1024) : undefined;
  return {
    transactionData: data,
    minResourceFee: fee,
    events,
    results: [
      { auth: auth.map((entry) => entry.toXDR('base64')), xdr: outcome.result.value.toXDR('base64') },
    ],
    ...(preamble && { restorePreamble: { minResourceFee: preamble.fee, transactionData: preamble.data } }),
    stateChanges: stateChangesOf(overlay),
    latestLedger: view.latestLedger,
  };
};

/** Restore and extend need no run: their footprint is given, and only the fee is worked out. */
const simulateFootprint = (frame: TransactionFrame, { view }: RpcContext) => {
  const footprint = frame.sorobanData?.resources().footprint();
  if (!footprint) return { error: 'the transaction declares no footprint', latestLedger: view.latestLedger };
  const base64 = (key: xdr.LedgerKey): string => key.toXDR('base64');
  const { data, fee } = dataOf(
    { readOnly: footprint.readOnly().map(base64), readWrite: footprint.readWrite().map(base64) },
    1024,
  );
  return {
    transactionData: data,
    minResourceFee: fee,
    events: [],
    results: [{ auth: [], xdr: xdr.ScVal.scvVoid().toXDR('base64') }],
    latestLedger: view.latestLedger,
  };
};

export const simulateTransaction: RpcMethod = (params, context) => {
  const parsed = paramsSchema.safeParse(params);
  const frame = parsed.success
    ? parseTransaction(parsed.data.transaction, context.networkPassphrase)
    : undefined;
  if (!frame) throw invalidParams('Could not unmarshal transaction');
  const { latestLedger } = context.view;
  const operation = frame.operations[0];
  if (frame.operations.length !== 1 || !operation) {
    return { error: 'Transaction contains more than one operation', latestLedger };
  }
  switch (operation.type) {
    case 'invokeHostFunction':
      return simulateInvocation(operation, frame, context);
    case 'restoreFootprint':
    case 'extendFootprintTtl':
      return simulateFootprint(frame, context);
    default:
      return { error: `Transaction contains unsupported operation type: ${operation.type}`, latestLedger };
  }
};
