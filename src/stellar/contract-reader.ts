import { RejectedError, TransientError } from '../platform/errors';
import { simulationContractCode, simulationHostError } from './chain/result-codec';
import { simulationEnvelope } from './chain/transaction-codec';
import type { ContractCall, ContractValue } from './contract-value';
import type { Simulation, SorobanRpc } from './rpc/soroban-rpc';
import { decodeContractValue } from './scval-codec';
import type { Endpoint } from './rpc/endpoint';
import { NO_SUCH_CONTRACT, type ContractReader, type RefusalWitnesses } from './submission';

/**
 * What the host says of a contract without an entry in the ledger: its own, or that of one it calls. A contract that lacks
 * the function answers otherwise.
 */
const NOTHING_THERE = 'Storage/MissingValue';

export interface SimulatorOptions {
  rpc: SorobanRpc;
  /** G… of the account in whose name calls are simulated. */
  actor: string;
  networkPassphrase: string;
}

/** What a call would do, and what it would need. */
export interface SimulatedCall {
  returnValueXdr: string;
  /** SorobanTransactionData: footprint, resources and resource fee. */
  footprint: string;
  auth: string[];
  /** Present when entries have to be brought back from the archive first. */
  restoreFootprint?: string;
}

/** Simulates calls; reads are simulations whose result is all that is wanted. */
export class Simulator implements ContractReader, RefusalWitnesses {
  constructor(private readonly options: SimulatorOptions) {}

  async read(call: ContractCall, signal: AbortSignal, minLedger = 0): Promise<ContractValue> {
    return decodeContractValue((await this.simulate(call, signal, minLedger)).returnValueXdr);
  }

  refusalsOf(call: ContractCall, signal: AbortSignal, minLedger = 0): Promise<readonly (number | null)[]> {
    return Promise.all(
      this.options.rpc.pool.witnesses().map(async (only) => {
        try {
          await this.simulate(call, signal, minLedger, only);
          return null;
        } catch (error) {
          signal.throwIfAborted();
          const code = error instanceof RejectedError ? error.details['contractCode'] : undefined;
          return typeof code === 'number' ? code : null;
        }
      }),
    );
  }

  /**
   * @throws RejectedError CONTRACT_REJECTED (with `details.contractCode`), NO_SUCH_CONTRACT or SIMULATION_REJECTED;
   * TransientError.
   */
  async simulate(
    call: ContractCall,
    signal: AbortSignal,
    minLedger = 0,
    only?: Endpoint,
  ): Promise<SimulatedCall> {
    const { rpc, actor, networkPassphrase } = this.options;
    const envelope = simulationEnvelope(call, actor, networkPassphrase);
    const simulation = await rpc.simulate(envelope, {
      signal,
      minLedger,
      ...(only === undefined ? {} : { only }),
    });
    if (simulation.error !== undefined) throw rejection(call, simulation.error, simulation.events ?? []);
    return readSimulation(simulation);
  }
}

function readSimulation(simulation: Simulation): SimulatedCall {
  const result = simulation.results?.[0];
  if (result === undefined || simulation.transactionData === undefined) {
    throw new TransientError('RPC_INVALID_RESPONSE', 'a simulation without error came without result');
  }
  return {
    returnValueXdr: result.xdr,
    footprint: simulation.transactionData,
    auth: result.auth ?? [],
    ...(simulation.restorePreamble && { restoreFootprint: simulation.restorePreamble.transactionData }),
  };
}

function rejection(call: ContractCall, error: string, events: readonly string[]): RejectedError {
  const contractCode = simulationContractCode(error, events);
  const what = `${call.functionName} of ${call.contractId}`;
  const headline = error.split('\n', 1)[0] ?? '';
  if (contractCode !== undefined) {
    return new RejectedError('CONTRACT_REJECTED', `${what} was refused with contract error ${contractCode}`, {
      details: { contractCode },
    });
  }
  const code =
    simulationHostError(error, events) === NOTHING_THERE ? NO_SUCH_CONTRACT : 'SIMULATION_REJECTED';
  return new RejectedError(code, `${what} was refused: ${headline}`);
}
