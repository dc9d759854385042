import { nextLedger } from './chain-position';
import type { StreamPosition } from './event-store';

/** Five filters of five contracts: the most one request can ask for. */
export const MAX_GROUP = 25;

/** Contracts at most so many ledgers apart are read together from the rearmost; what some had already are duplicates. */
const MERGE_WITHIN_LEDGERS = 500;

export interface ContractGroup {
  contractIds: string[];
  position: StreamPosition;
}

/** The ledger in which reading goes on, or null for a cursor that only its server can read. */
export function ledgerOf(position: StreamPosition): number | null {
  return position.startLedger ?? nextLedger(position.cursor);
}

/**
 * Contracts that can be read by one request. A contract that was added later has a position of its own until it has
 * caught up; from then on it travels with the others.
 */
export function groupContracts(
  positions: ReadonlyMap<string, StreamPosition>,
  maxGroup: number,
): ContractGroup[] {
  const groups: ContractGroup[] = [];
  const byProgress = [...positions].sort(([, a], [, b]) => compare(a, b));
  for (const [contractId, position] of byProgress) {
    const group = groups.at(-1);
    if (group !== undefined && group.contractIds.length < maxGroup && isNear(group.position, position)) {
      group.contractIds.push(contractId);
    } else groups.push({ contractIds: [contractId], position });
  }
  return groups;
}

function compare(a: StreamPosition, b: StreamPosition): number {
  const byLedger = (ledgerOf(a) ?? 0) - (ledgerOf(b) ?? 0);
  if (byLedger !== 0) return byLedger;
  // A start ledger stands before every event of its ledger.
  return (a.cursor ?? '') < (b.cursor ?? '') ? -1 : 1;
}

function isNear(rear: StreamPosition, position: StreamPosition): boolean {
  const from = ledgerOf(rear);
  const to = ledgerOf(position);
  if (from === null || to === null) return rear.cursor !== undefined && rear.cursor === position.cursor;
  return to - from <= MERGE_WITHIN_LEDGERS;
}
