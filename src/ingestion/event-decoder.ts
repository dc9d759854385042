import { PermanentError } from '../platform/errors';
import type { ContractValue } from '../stellar/contract-value';
import { eventIdentity } from './chain-position';
import type { ContractEvent } from './event-handler';
import type { ContractValueDecoder, RawEvent } from './event-source';
import { foldName } from './topic-pattern';

/** @throws PermanentError (MALFORMED_EVENT) when a part of it is not what it should be. */
export function decodeEvent(
  raw: RawEvent,
  decode: ContractValueDecoder,
  decodeTopic: ContractValueDecoder = decode,
): ContractEvent {
  const ledgerClosedAt = new Date(raw.ledgerClosedAt);
  if (Number.isNaN(ledgerClosedAt.getTime())) throw malformed('ledgerClosedAt is not a time');
  try {
    return {
      id: raw.id,
      identity: eventIdentity(raw),
      contractId: raw.contractId,
      ledger: raw.ledger,
      ledgerClosedAt,
      transactionHash: raw.txHash,
      topics: raw.topic.map(decodeTopic),
      value: decode(raw.value),
      raw,
    };
  } catch (error) {
    // The bytes never change: whatever a decoder throws at them, it will throw again.
    throw malformed(error instanceof Error ? error.message : String(error), error);
  }
}

/** A decoder that knows what it has decoded lately. It forgets everything at once when it knows `capacity` values. */
export function rememberDecoded(decode: ContractValueDecoder, capacity: number): ContractValueDecoder {
  const known = new Map<string, ContractValue>();
  return (base64) => {
    const remembered = known.get(base64);
    if (remembered !== undefined) return remembered;
    const value = decode(base64);
    if (known.size >= capacity) known.clear();
    known.set(base64, value);
    return value;
  };
}

function malformed(problem: string, cause?: unknown): PermanentError {
  return new PermanentError('MALFORMED_EVENT', `malformed event: ${problem}`, { cause });
}

/** The value under `name` (compared like topic names) of a contract struct, or undefined. */
export function fieldOf(value: ContractValue, name: string): ContractValue | undefined {
  if (value.type !== 'map') return undefined;
  const wanted = foldName(name);
  return value.value.find(
    ({ key }) => (key.type === 'symbol' || key.type === 'string') && foldName(key.value) === wanted,
  )?.value;
}
