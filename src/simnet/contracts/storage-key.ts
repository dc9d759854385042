import type { xdr } from '@stellar/stellar-sdk';
import { toVal } from '../scval';
import type { ContractContext } from './sim-contract';

/** A storage key as the Rust SDK encodes an enum variant: a vector of its name and its fields. */
export const storageKey = (variant: string, ...fields: xdr.ScVal[]): xdr.ScVal =>
  toVal.vec([toVal.symbol(variant), ...fields]);

/** Counts from 1, as the contracts' own id generators do. */
export const nextId = (context: ContractContext, counter: string): bigint => {
  const key = storageKey(counter);
  const id = (context.get(key)?.u64().toBigInt() ?? 0n) + 1n;
  context.set(key, toVal.u64(id));
  return id;
};
