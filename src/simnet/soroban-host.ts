import { createHash } from 'node:crypto';
import { Address, StrKey, xdr } from '@stellar/stellar-sdk';
import type { AuthContext, InvocationFrame } from './auth';
import type { ContractContext, SimContract } from './contracts/sim-contract';
import { HostError } from './host-error';
import { toVal } from './scval';
import type { ContractDataRecord, Durability, StateKey, StateOverlay } from './state';
import { contractDataKey } from './state';

/** Ledgers that a persistent entry lives when its contract says nothing else: about 120 days of 5 s ledgers. */
export const defaultLiveForLedgers = 2_073_600;

export const instanceKey = xdr.ScVal.scvLedgerKeyContractInstance();

export interface LedgerInfo {
  sequence: number;
  closeTimeSeconds: number;
}

/** A transaction names an archived entry: it has to be restored before anything else. */
export class ArchivedEntryError extends Error {
  constructor(readonly key: StateKey) {
    super('archived ledger entry');
    this.name = 'ArchivedEntryError';
  }
}

export interface InvocationOutcome {
  result:
    { kind: 'returned'; value: xdr.ScVal } | { kind: 'trapped'; error: HostError } | { kind: 'archived' };
  events: xdr.ContractEvent[];
  diagnosticEvents: xdr.DiagnosticEvent[];
  archivedKeys: StateKey[];
}

export const contractEventOf = (
  contractId: string,
  topics: xdr.ScVal[],
  data: xdr.ScVal,
): xdr.ContractEvent =>
  new xdr.ContractEvent({
    ext: new xdr.ExtensionPoint(0),
    // The generated types call this a ContractId; the class takes the raw 32 bytes.
    contractId: StrKey.decodeContract(contractId) as unknown as xdr.ContractId,
    type: xdr.ContractEventType.contract(),
    body: new xdr.ContractEventBody(0, new xdr.ContractEventV0({ topics, data })),
  });

const diagnosticEvent = (
  contractId: string | undefined,
  topics: xdr.ScVal[],
  data: xdr.ScVal,
  succeeded: boolean,
): xdr.DiagnosticEvent =>
  new xdr.DiagnosticEvent({
    inSuccessfulContractCall: succeeded,
    event: new xdr.ContractEvent({
      ext: new xdr.ExtensionPoint(0),
      contractId: contractId ? (StrKey.decodeContract(contractId) as unknown as xdr.ContractId) : null,
      type: xdr.ContractEventType.diagnostic(),
      body: new xdr.ContractEventBody(0, new xdr.ContractEventV0({ topics, data })),
    }),
  });

interface Run {
  overlay: StateOverlay;
  ledger: LedgerInfo;
  auth: AuthContext;
  /** Simulation reads an archived entry as if it had been restored, and reports it; a ledger refuses. */
  archived: 'report' | 'refuse';
  events: xdr.ContractEvent[];
  archivedKeys: Set<StateKey>;
}

export interface InvocationRequest {
  frame: InvocationFrame;
  overlay: StateOverlay;
  ledger: LedgerInfo;
  auth: AuthContext | (() => AuthContext);
  archived: 'report' | 'refuse';
}

/**
 * Runs contracts over an overlay of the ledger state. Unlike the real host it doesn't hold a call to the footprint that
 * was declared, so that two mints prepared on the same state can both land, whichever certificate id each ends up with.
 */
export class SorobanHost {
  private readonly contracts = new Map<string, SimContract>();

  constructor(readonly networkId: Buffer) {}

  contractIdFor(name: string): string {
    return StrKey.encodeContract(createHash('sha256').update(this.networkId).update(name).digest());
  }

  deploy(contractId: string, contract: SimContract, overlay: StateOverlay, ledger: LedgerInfo): void {
    this.contracts.set(contractId, contract);
    overlay.write({
      kind: 'contractData',
      contractId,
      key: instanceKey,
      value: xdr.ScVal.scvContractInstance(
        new xdr.ScContractInstance({
          executable: xdr.ContractExecutable.contractExecutableWasm(
            createHash('sha256').update(contract.name).digest(),
          ),
          storage: null,
        }),
      ),
      durability: 'persistent',
      liveUntilLedger: ledger.sequence + defaultLiveForLedgers,
    });
    const run: Run = {
      overlay,
      ledger,
      auth: { require: () => undefined },
      archived: 'refuse',
      events: [],
      archivedKeys: new Set(),
    };
    contract.initialise(this.contextOf({ contractId, functionName: '__constructor', args: [] }, run));
  }

  invoke(request: InvocationRequest): InvocationOutcome {
    const { frame, overlay, ledger, archived } = request;
    const events: xdr.ContractEvent[] = [];
    const archivedKeys = new Set<StateKey>();
    const callTopics = [
      toVal.symbol('fn_call'),
      toVal.bytes(StrKey.decodeContract(frame.contractId)),
      toVal.symbol(frame.functionName),
    ];
    const callEvent = (succeeded: boolean): xdr.DiagnosticEvent =>
      diagnosticEvent(undefined, callTopics, toVal.vec(frame.args), succeeded);
    try {
      const auth = typeof request.auth === 'function' ? request.auth() : request.auth;
      const value = this.run(frame, { overlay, ledger, auth, archived, events, archivedKeys });
      const returned = [toVal.symbol('fn_return'), toVal.symbol(frame.functionName)];
      return {
        result: { kind: 'returned', value },
        events,
        diagnosticEvents: [callEvent(true), diagnosticEvent(frame.contractId, returned, value, true)],
        archivedKeys: [...archivedKeys],
      };
    } catch (error) {
      if (error instanceof ArchivedEntryError) {
        return { result: { kind: 'archived' }, events: [], diagnosticEvents: [], archivedKeys: [error.key] };
      }
      if (!(error instanceof HostError)) throw error;
      const data = toVal.vec([toVal.string(error.detail), toVal.symbol(frame.functionName)]);
      const topics = [toVal.symbol('error'), error.toScVal()];
      return {
        result: { kind: 'trapped', error },
        events: [],
        diagnosticEvents: [callEvent(false), diagnosticEvent(frame.contractId, topics, data, false)],
        archivedKeys: [],
      };
    }
  }

  private run(frame: InvocationFrame, run: Run): xdr.ScVal {
    const contract = this.contracts.get(frame.contractId);
    if (!contract || !this.load(frame.contractId, instanceKey, 'persistent', run)) {
      throw HostError.missingValue('storage', 'trying to get non-existing value for contract instance');
    }
    const contractFunction = contract.functions[frame.functionName];
    if (!contractFunction) {
      throw HostError.missingValue(
        'wasmVm',
        `trying to invoke non-existent contract function ${frame.functionName}`,
      );
    }
    return contractFunction.invoke(this.contextOf(frame, run), frame.args);
  }

  private contextOf(frame: InvocationFrame, run: Run): ContractContext {
    const { contractId } = frame;
    return {
      contractId,
      ledgerSequence: run.ledger.sequence,
      timestamp: BigInt(run.ledger.closeTimeSeconds),
      networkId: this.networkId,
      get: (key, durability = 'persistent') => this.load(contractId, key, durability, run)?.value,
      set: (key, value, { durability = 'persistent', liveForLedgers = defaultLiveForLedgers } = {}) =>
        run.overlay.write({
          kind: 'contractData',
          contractId,
          key,
          value,
          durability,
          liveUntilLedger: run.ledger.sequence + liveForLedgers,
        }),
      requireAuth: (address) => run.auth.require(address, frame),
      emit: (topics, data) => {
        run.events.push(contractEventOf(contractId, topics, data));
      },
      call: (target, functionName, args) =>
        this.run({ contractId: target, functionName, args, caller: contractId }, run),
    };
  }

  private load(
    contractId: string,
    key: xdr.ScVal,
    durability: Durability,
    run: Run,
  ): ContractDataRecord | undefined {
    const stateKey = contractDataKey(contractId, key, durability);
    const record = run.overlay.read(stateKey)?.record;
    if (record?.kind !== 'contractData') return undefined;
    if (record.liveUntilLedger >= run.ledger.sequence) return record;
    if (durability === 'temporary') return undefined;
    if (run.archived === 'refuse') throw new ArchivedEntryError(stateKey);
    run.archivedKeys.add(stateKey);
    return record;
  }
}

/** Contract, function and arguments of an invocation; nothing for uploads and deployments, which are not simulated. */
export const frameOf = (hostFunction: xdr.HostFunction): InvocationFrame | undefined => {
  if (hostFunction.switch().name !== 'hostFunctionTypeInvokeContract') return undefined;
  const invocation = hostFunction.invokeContract();
  return {
    contractId: Address.fromScAddress(invocation.contractAddress()).toString(),
    functionName: invocation.functionName().toString(),
    args: invocation.args(),
  };
};
