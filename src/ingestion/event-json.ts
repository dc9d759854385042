import type { ContractValue } from '../stellar/contract-value';
import type { ContractEvent } from './event-handler';

export type JsonValue = null | boolean | number | string | JsonValue[] | { [name: string]: JsonValue };

/** An event for readers outside: what can be shown as JSON, and the XDR for those who want it exactly. */
export interface EventJson {
  id: string;
  contractId: string;
  ledger: number;
  ledgerClosedAt: string;
  transactionHash: string;
  topics: JsonValue[];
  value: JsonValue;
  xdr: { topics: string[]; value: string };
}

export function eventToJson(event: ContractEvent): EventJson {
  return {
    id: event.id,
    contractId: event.contractId,
    ledger: event.ledger,
    ledgerClosedAt: event.ledgerClosedAt.toISOString(),
    transactionHash: event.transactionHash,
    topics: event.topics.map(valueToJson),
    value: valueToJson(event.value),
    xdr: { topics: event.raw.topic, value: event.raw.value },
  };
}

/** Integers that a JSON number can't hold are decimal text, bytes are hex, structs are objects. */
export function valueToJson(value: ContractValue): JsonValue {
  switch (value.type) {
    case 'void':
      return null;
    case 'bytes':
      return Buffer.from(value.value).toString('hex');
    case 'vec':
      return value.value.map(valueToJson);
    case 'map':
      return mapToJson(value.value);
    default:
      return typeof value.value === 'bigint' ? value.value.toString() : value.value;
  }
}

function mapToJson(entries: readonly { key: ContractValue; value: ContractValue }[]): JsonValue {
  const named = entries.map(({ key, value }) => [valueToJson(key), valueToJson(value)] as const);
  // Keys of other types than text are rare: shown as pairs, so that none of them is made to look like another.
  if (named.some(([key]) => typeof key !== 'string')) return named.map(([key, value]) => [key, value]);
  return Object.fromEntries(named) as Record<string, JsonValue>;
}
