/**
 * A contract argument or result, typed as the contract types it. The rest of the house builds and reads these and never
 * sees XDR. Integers of 64 bits and more are bigints; `address` is a strkey (G… or C…).
 */
export type ContractValue =
  | { type: 'void' }
  | { type: 'bool'; value: boolean }
  | { type: 'u32' | 'i32'; value: number }
  | { type: 'u64' | 'i64' | 'u128' | 'i128' | 'u256' | 'i256'; value: bigint }
  | { type: 'symbol' | 'string'; value: string }
  | { type: 'bytes'; value: Uint8Array }
  | { type: 'address'; value: string }
  | { type: 'vec'; value: ContractValue[] }
  | { type: 'map'; value: { key: ContractValue; value: ContractValue }[] };

export const contractValue = {
  bool: (value: boolean): ContractValue => ({ type: 'bool', value }),
  u32: (value: number): ContractValue => ({ type: 'u32', value }),
  u64: (value: bigint): ContractValue => ({ type: 'u64', value }),
  i128: (value: bigint): ContractValue => ({ type: 'i128', value }),
  symbol: (value: string): ContractValue => ({ type: 'symbol', value }),
  string: (value: string): ContractValue => ({ type: 'string', value }),
  bytes: (value: Uint8Array): ContractValue => ({ type: 'bytes', value }),
  address: (value: string): ContractValue => ({ type: 'address', value }),
  vec: (value: ContractValue[]): ContractValue => ({ type: 'vec', value }),
  /** A contract struct: a map with symbol keys, in the sorted order that the host demands. */
  struct: (fields: Record<string, ContractValue>): ContractValue => ({
    type: 'map',
    value: Object.keys(fields)
      .sort()
      .map((name) => ({ key: { type: 'symbol', value: name }, value: fields[name] as ContractValue })),
  }),
} as const;

export interface ContractCall {
  /** C… strkey. */
  contractId: string;
  functionName: string;
  args: ContractValue[];
}
