import { PermanentError } from '../../platform/errors';
import type { ContractEvent } from '../../ingestion/event-handler';
import type { ContractValue } from '../../stellar/contract-value';
import { structFields, wholeNumber } from '../contracts/contract-answers';
import { stroopsToXlm, type PriorityFlag } from '../jobs/priority';

/** Events of a later version may mean something else. */
const NEWEST_VERSION = 1n;

interface RaffleEventFields {
  /** Decimal. */
  requestId: string | null;
  raffleId: number | null;
  /** G… or C… that the event names as its oracle. */
  oracle: string | null;
  isTooNew: boolean;
  field: (name: string) => ContractValue | undefined;
}

export interface RandomnessRequested {
  requestId: string;
  raffleId: number | null;
  oracle: string | null;
  prizeXlm: number | undefined;
  priority: PriorityFlag;
}

export interface RandomnessReceived {
  requestId: string | null;
  raffleId: number | null;
  /** In the form that the contract keeps: hex of 32 bytes, or a decimal u64. */
  seed: string | null;
}

/** Null for an event of a version that isn't known here. @throws PermanentError MALFORMED_EVENT */
export function readRandomnessRequested(event: ContractEvent): RandomnessRequested | null {
  const { requestId, raffleId, oracle, isTooNew, field } = fieldsOf(event);
  if (isTooNew) return null;
  if (requestId === null) throw malformed(event, 'it has no request_id');
  const prize = wholeNumber(field('prize_amount'));
  return {
    requestId,
    raffleId,
    oracle,
    prizeXlm: prize === null ? undefined : stroopsToXlm(prize),
    priority: readPriority(field('priority')),
  };
}

/** Null for an event of a version that isn't known here, or without a prize. @throws PermanentError MALFORMED_EVENT */
export function readRaffleCreated(event: ContractEvent): { raffleId: number; prizeXlm: number } | null {
  const { raffleId, isTooNew, field } = fieldsOf(event);
  const prize = wholeNumber(field('prize_amount'));
  if (isTooNew || prize === null) return null;
  if (raffleId === null) throw malformed(event, 'it has no raffle_id');
  return { raffleId, prizeXlm: stroopsToXlm(prize) };
}

/**
 * C… of the raffle that was made, under any of the names that factories give it. Null where raffles are numbers, and for
 * a version that isn't known here. @throws PermanentError MALFORMED_EVENT
 */
export function readRaffleInstance(event: ContractEvent): string | null {
  const { isTooNew, field } = fieldsOf(event);
  if (isTooNew) return null;
  for (const name of ['raffle_id', 'instance', 'raffle_address']) {
    const value = field(name);
    if (value?.type === 'address' && value.value.startsWith('C')) return value.value;
  }
  return null;
}

/** @throws PermanentError MALFORMED_EVENT */
export function readRandomnessReceived(event: ContractEvent): RandomnessReceived | null {
  const { requestId, raffleId, isTooNew, field } = fieldsOf(event);
  if (isTooNew) return null;
  if (requestId === null && raffleId === null) throw malformed(event, 'it names neither request nor raffle');
  const seed = field('seed');
  const seedText =
    seed?.type === 'bytes'
      ? Buffer.from(seed.value).toString('hex')
      : (wholeNumber(seed)?.toString() ?? null);
  return { requestId, raffleId, seed: seedText };
}

function fieldsOf(event: ContractEvent): RaffleEventFields {
  const fields = structFields(event.value, `event ${event.id}`);
  const raffleId = wholeNumber(fields.get('raffle_id'));
  const oracle = fields.get('oracle');
  return {
    requestId: wholeNumber(fields.get('request_id'))?.toString() ?? null,
    raffleId: raffleId === null ? null : Number(raffleId),
    oracle: oracle?.type === 'address' ? oracle.value : null,
    isTooNew: (wholeNumber(fields.get('version')) ?? 0n) > NEWEST_VERSION,
    field: (name) => fields.get(name),
  };
}

function readPriority(value: ContractValue | undefined): PriorityFlag {
  if (value?.type === 'bool') return value.value;
  if (value?.type !== 'symbol' && value?.type !== 'string') return undefined;
  const name = value.value.toLowerCase();
  return name === 'high' || name === 'critical' ? name : undefined;
}

const malformed = (event: ContractEvent, problem: string): PermanentError =>
  new PermanentError('MALFORMED_EVENT', `event ${event.id}: ${problem}`);
