import { xdr } from '@stellar/stellar-sdk';
import { PermanentError } from '../../platform/errors';
import type { LandedTransaction } from '../rpc/soroban-rpc';

/** How the network put it: its own names (`txBadSeq`), and the operation's where the operation failed. */
export interface ResultCodes {
  transaction: string;
  operation?: string;
  /** What was charged; for a refused transaction, the fee that would have been enough. Stroops. */
  feeStroops: bigint;
}

/**
 * - contract: the contract, or the call itself, said no. The same call would meet the same answer.
 * - stale: what was simulated no longer held when it was applied; a transaction built anew may well pass.
 */
export type FailureNature = 'contract' | 'stale';

export type LandedResult =
  | { kind: 'success'; feeStroops: bigint; returnValueXdr: string }
  | { kind: 'failed'; code: string; contractCode?: number; nature: FailureNature };

const VOID_XDR = xdr.ScVal.scvVoid().toXDR('base64');

/** Codes of an envelope that no change on the network will make valid. */
const HOPELESS = new Set([
  'txMalformed',
  'txBadAuth',
  'txBadAuthExtra',
  'txMissingOperation',
  'txNotSupported',
  'txBadSponsorship',
  'txBadMinSeqAgeOrGap',
  'txSorobanInvalid',
]);

export const isHopeless = (codes: ResultCodes): boolean => HOPELESS.has(codes.transaction);

const malformed = (cause: unknown): PermanentError =>
  new PermanentError('MALFORMED_TRANSACTION_RESULT', 'the node sent a transaction result that is no XDR', {
    cause,
  });

/** Reads a TransactionResult; that of a fee bump is looked through to its inner transaction. @throws PermanentError */
export function readResultCodes(resultXdr: string): ResultCodes {
  try {
    const whole = xdr.TransactionResult.fromXDR(resultXdr, 'base64');
    const feeStroops = whole.feeCharged().toBigInt();
    const outer = whole.result();
    const name = outer.switch().name;
    const result =
      name === 'txFeeBumpInnerSuccess' || name === 'txFeeBumpInnerFailed'
        ? outer.innerResultPair().result().result()
        : outer;
    const transaction = result.switch().name;
    if (transaction !== 'txFailed' && transaction !== 'txSuccess') return { transaction, feeStroops };
    const operation = result.results()[0];
    return operation === undefined
      ? { transaction, feeStroops }
      : { transaction, operation: operationCode(operation), feeStroops };
  } catch (error) {
    throw malformed(error);
  }
}

function operationCode(result: xdr.OperationResult): string {
  if (result.switch().name !== 'opInner') return result.switch().name;
  const inner = result.tr();
  switch (inner.switch().name) {
    case 'invokeHostFunction':
      return inner.invokeHostFunctionResult().switch().name;
    case 'restoreFootprint':
      return inner.restoreFootprintResult().switch().name;
    case 'createAccount':
      return inner.createAccountResult().switch().name;
    default:
      return inner.switch().name;
  }
}

/** @throws PermanentError MALFORMED_TRANSACTION_RESULT */
export function readLanded(landed: LandedTransaction): LandedResult {
  const codes = readResultCodes(landed.resultXdr);
  if (landed.status === 'SUCCESS') {
    return {
      kind: 'success',
      feeStroops: codes.feeStroops,
      returnValueXdr: returnValueOf(landed.resultMetaXdr),
    };
  }
  const contractCode = contractCodeOf(diagnosticEventsOf(landed));
  return {
    kind: 'failed',
    code: codes.operation ?? codes.transaction,
    ...(contractCode !== undefined && { contractCode }),
    // A trap without a contract's own code is most often a footprint that another transaction has overtaken.
    nature: contractCode === undefined ? 'stale' : 'contract',
  };
}

/** Base64 XDR of what the contract returned; void where it returned nothing. Meta v3 (before protocol 23) and v4. */
export function returnValueOf(resultMetaXdr: string): string {
  return readMeta(resultMetaXdr).returnValue?.toXDR('base64') ?? VOID_XDR;
}

interface Meta {
  returnValue: xdr.ScVal | null;
  diagnosticEvents: xdr.DiagnosticEvent[];
}

function readMeta(resultMetaXdr: string): Meta {
  try {
    const meta = xdr.TransactionMeta.fromXDR(resultMetaXdr, 'base64');
    switch (meta.switch()) {
      case 3: {
        const soroban = meta.v3().sorobanMeta();
        return {
          returnValue: soroban?.returnValue() ?? null,
          diagnosticEvents: soroban?.diagnosticEvents() ?? [],
        };
      }
      case 4:
        return {
          returnValue: meta.v4().sorobanMeta()?.returnValue() ?? null,
          diagnosticEvents: meta.v4().diagnosticEvents(),
        };
      default:
        return { returnValue: null, diagnosticEvents: [] };
    }
  } catch (error) {
    throw malformed(error);
  }
}

/** Nodes give diagnostic events beside the meta or inside it, or, with diagnostics off, not at all. */
function diagnosticEventsOf(landed: LandedTransaction): xdr.DiagnosticEvent[] {
  if (landed.diagnosticEventsXdr?.length) return readDiagnosticEvents(landed.diagnosticEventsXdr);
  return readMeta(landed.resultMetaXdr).diagnosticEvents;
}

function readDiagnosticEvents(events: readonly string[]): xdr.DiagnosticEvent[] {
  try {
    return events.map((event) => xdr.DiagnosticEvent.fromXDR(event, 'base64'));
  } catch (error) {
    throw malformed(error);
  }
}

/** The last error event: errors travel outwards, so that is the one the call ended with. */
function lastErrorOf(events: readonly xdr.DiagnosticEvent[]): xdr.ScError | undefined {
  for (const event of events.toReversed()) {
    for (const topic of event.event().body().v0().topics()) {
      if (topic.switch().name === 'scvError') return topic.error();
    }
  }
  return undefined;
}

/** The contract's code in it; undefined where the host raised it. */
function contractCodeOf(events: readonly xdr.DiagnosticEvent[]): number | undefined {
  const error = lastErrorOf(events);
  return error?.switch().name === 'sceContract' ? error.contractCode() : undefined;
}

/** How the host writes a contract's error at the head of a simulation's error text. */
const HOST_ERROR = /^HostError: Error\(Contract, #(\d+)\)/m;

/** The contract's error code in a refused simulation: from its events, or, where the node gives none, its error text. */
export function simulationContractCode(error: string, events: readonly string[]): number | undefined {
  const fromEvents = contractCodeOf(readDiagnosticEvents(events));
  if (fromEvents !== undefined) return fromEvents;
  const match = HOST_ERROR.exec(error);
  return match?.[1] === undefined ? undefined : Number(match[1]);
}

/** How the host writes an error of its own: class and code. */
const OWN_ERROR = /^HostError: Error\((\w+), (\w+)\)/m;

/** The host's own error in a refused simulation, like `Storage/MissingValue`; undefined where the contract raised it. */
export function simulationHostError(error: string, events: readonly string[]): string | undefined {
  const raised = lastErrorOf(readDiagnosticEvents(events));
  if (raised !== undefined) {
    return raised.switch().name === 'sceContract'
      ? undefined
      : `${raised.switch().name.replace(/^sce/, '')}/${raised.code().name.replace(/^scec/, '')}`;
  }
  const match = OWN_ERROR.exec(error);
  return match === null ? undefined : `${match[1]}/${match[2]}`;
}
