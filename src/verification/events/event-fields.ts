import { PermanentError } from '../../platform/errors';
import type { ContractValue } from '../../stellar/contract-value';

const malformed = (what: string): PermanentError =>
  new PermanentError('MALFORMED_CONTRACT_EVENT', `${what} is missing or of another type`);

/** @throws PermanentError MALFORMED_CONTRACT_EVENT, as all of these. */
export function textField(value: ContractValue, name: string): string {
  const field =
    value.type === 'map'
      ? value.value.find(({ key }) => key.type === 'symbol' && key.value === name)?.value
      : undefined;
  if (field?.type === 'string' || field?.type === 'symbol' || field?.type === 'address') return field.value;
  throw malformed(name);
}

export function addressOf(value: ContractValue | undefined, name: string): string {
  if (value?.type === 'address') return value.value;
  throw malformed(name);
}

export function u64Of(value: ContractValue | undefined, name: string): bigint {
  if (value?.type === 'u64') return value.value;
  throw malformed(name);
}

/** A hash as the contract gives it: as text, or as bytes. @returns lower-case hex */
export function hashOf(value: ContractValue | undefined, name: string): string {
  if (value?.type === 'string') return value.value.toLowerCase();
  if (value?.type === 'bytes') return Buffer.from(value.value).toString('hex');
  throw malformed(name);
}
