import type { xdr } from '@stellar/stellar-sdk';
import { HostError } from '../host-error';
import type { Decoder } from '../scval';
import type { Durability } from '../state';

export interface StorageOptions {
  durability?: Durability;
  /** How many ledgers from now the entry lives; a persistent one may be restored afterwards. */
  liveForLedgers?: number;
}

/** What the simulated host offers to a contract while one of its functions runs. */
export interface ContractContext {
  readonly contractId: string;
  readonly ledgerSequence: number;
  /** Close time of the ledger that the call runs in, in epoch seconds. */
  readonly timestamp: bigint;
  readonly networkId: Buffer;
  get(key: xdr.ScVal, durability?: Durability): xdr.ScVal | undefined;
  set(key: xdr.ScVal, value: xdr.ScVal, options?: StorageOptions): void;
  /** Traps with `Error(Auth, InvalidAction)` unless that address authorised this very call. */
  requireAuth(address: string): void;
  emit(topics: xdr.ScVal[], data: xdr.ScVal): void;
  call(contractId: string, functionName: string, args: xdr.ScVal[]): xdr.ScVal;
}

export interface ContractFunction {
  invoke(context: ContractContext, args: xdr.ScVal[]): xdr.ScVal;
}

/** A contract written in TypeScript: the stand-in for deployed Wasm. */
export interface SimContract {
  readonly name: string;
  /** Runs once, at genesis or deployment, without authorisation checks. */
  initialise(context: ContractContext): void;
  readonly functions: Readonly<Record<string, ContractFunction>>;
}

export const contractFunction = <Args extends unknown[]>(
  decoders: [...{ [K in keyof Args]: Decoder<Args[K]> }],
  body: (context: ContractContext, ...args: Args) => xdr.ScVal,
): ContractFunction => ({
  invoke: (context, args) => {
    if (args.length !== decoders.length) {
      throw HostError.host('wasmVm', 'internalError', 'VM call failed: Func(MismatchingParameterLen)');
    }
    const decode = decoders as readonly Decoder<unknown>[];
    return body(context, ...(args.map((value, index) => decode[index]?.(value)) as Args));
  },
});
