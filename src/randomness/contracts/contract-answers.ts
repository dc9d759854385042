import { PermanentError, RejectedError } from '../../platform/errors';
import type { ContractCall, ContractValue } from '../../stellar/contract-value';
import { NO_SUCH_CONTRACT, type ContractReader } from '../../stellar/submission';
import type { InterfaceCheck } from './raffle-contract';

/** The fields of a contract struct. @throws PermanentError UNEXPECTED_CONTRACT_ANSWER */
export function structFields(value: ContractValue, what: string): ReadonlyMap<string, ContractValue> {
  if (value.type !== 'map') throw unexpected(what, `a ${value.type} instead of a struct`);
  return new Map(
    value.value.flatMap(({ key, value: field }) =>
      key.type === 'symbol' || key.type === 'string' ? [[key.value, field] as const] : [],
    ),
  );
}

export const unexpected = (what: string, problem: string): PermanentError =>
  new PermanentError('UNEXPECTED_CONTRACT_ANSWER', `${what}: ${problem}`);

/** The name of an enum's value: as a symbol, as text, or as Soroban encodes an enum without payload, a vector of one symbol. */
export function nameOf(value: ContractValue | undefined): string | null {
  if (value?.type === 'symbol' || value?.type === 'string') return value.value;
  return value?.type === 'vec' ? nameOf(value.value[0]) : null;
}

export function wholeNumber(value: ContractValue | undefined): bigint | null {
  switch (value?.type) {
    case 'u32':
    case 'i32':
      return BigInt(value.value);
    case 'u64':
    case 'i64':
    case 'u128':
    case 'i128':
      return value.value;
    default:
      return null;
  }
}

export const contractCodeOf = (error: RejectedError): number | undefined => {
  const code = error.details['contractCode'];
  return typeof code === 'number' ? code : undefined;
};

/**
 * Simulates `call` with arguments that no raffle fits. A contract that has the function succeeds or refuses with an error
 * of its own; one that lacks it traps without.
 */
export async function hasFunction(
  reader: ContractReader,
  call: ContractCall,
  signal: AbortSignal,
): Promise<InterfaceCheck> {
  try {
    await reader.read(call, signal);
  } catch (error) {
    if (!(error instanceof RejectedError)) throw error;
    if (error.code === NO_SUCH_CONTRACT) return { kind: 'no_contract', problem: error.message };
    if (contractCodeOf(error) === undefined) return { kind: 'absent', problem: error.message };
  }
  return { kind: 'present' };
}
