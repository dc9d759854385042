import type { ContractEvent } from './event-handler';
import { fieldOf } from './event-decoder';
import { compileTopicPattern, topicNames } from './topic-pattern';

/** Topics of the compact format, as a handler's topic pattern. */
export const COMPACT_EVENT_TOPIC = 'EVENT/LOG';

const MODULES = ['AUDIT', 'GOV', 'TREASURY', 'CB', 'BURN', 'RECOVERY', 'FEE', 'CORE', 'UPGRADE'] as const;
export type CompactModule = (typeof MODULES)[number];

/** Actions are numbered from 1 (COMMIT) to 14 (UPGRADE); the contracts name those between. */
const MAX_ACTION = 14;
const HASH_BYTES = 32;

export type CompactEvent =
  | { kind: 'compact'; module: CompactModule; action: number; flags: number; value: bigint; hash: Uint8Array }
  /** Has the topics, but not the data, of the format. */
  | { kind: 'malformed'; problem: string }
  | { kind: 'other_format' };

const isCompact = compileTopicPattern(COMPACT_EVENT_TOPIC);

/** Reads {flags u32, value u64, hash bytes32}; flags: bits 0–7 module, bits 8–15 action. */
export function readCompactEvent(event: ContractEvent): CompactEvent {
  if (!isCompact(topicNames(event.topics))) return { kind: 'other_format' };
  const flags = fieldOf(event.value, 'flags');
  const value = fieldOf(event.value, 'value');
  const hash = fieldOf(event.value, 'hash');
  if (flags?.type !== 'u32') return { kind: 'malformed', problem: 'flags is not a u32' };
  if (value?.type !== 'u64') return { kind: 'malformed', problem: 'value is not a u64' };
  if (hash?.type !== 'bytes' || hash.value.length !== HASH_BYTES) {
    return { kind: 'malformed', problem: `hash is not ${HASH_BYTES} bytes` };
  }
  const module = MODULES[(flags.value & 0xff) - 1];
  if (module === undefined) return { kind: 'malformed', problem: `module ${flags.value & 0xff} is unknown` };
  const action = (flags.value >>> 8) & 0xff;
  if (action < 1 || action > MAX_ACTION) return { kind: 'malformed', problem: `action ${action} is unknown` };
  return { kind: 'compact', module, action, flags: flags.value, value: value.value, hash: hash.value };
}
