/** The newest ledger that a network told of. */
export interface ChainTip {
  ledger: number;
  /** When the network closed it, epoch milliseconds. */
  closedAt: number;
}

/** What shows that a network is not the one that was read until now. */
export interface OtherChain {
  /** The newest ledger of the network that was read. */
  seen: ChainTip;
  /** What a server says of the one that is there now. */
  found: ChainTip;
}

/** More than a ledger takes: some servers read their newest ledger's number a moment before its close time. */
const TOLERANCE_MS = 10_000;

/**
 * Along one chain close times only grow. So a server that merely lags tells an earlier time with its lower number; a later
 * one comes from a chain that counts anew. A higher number tells nothing: a new chain gets there as well.
 */
export function isOfAnotherChain(found: ChainTip, seen: ChainTip): boolean {
  if (found.ledger === seen.ledger) return Math.abs(found.closedAt - seen.closedAt) > TOLERANCE_MS;
  return found.ledger < seen.ledger && found.closedAt > seen.closedAt + TOLERANCE_MS;
}

/** Between two looks at a network that is read all the time, far less passes. */
const UNWATCHED_MS = 30_000;

/** Whether another chain could have come past `seen` since then without anyone having looked. */
export function mayHaveBeenPassed(found: ChainTip, seen: ChainTip): boolean {
  return found.ledger > seen.ledger && found.closedAt > seen.closedAt + UNWATCHED_MS;
}

/** Of what servers write as a close time: Unix seconds. Null for what is none. */
export function tipOf(ledger: number, closeTime: string | undefined): ChainTip | null {
  const closedAt = Number(closeTime) * 1000;
  return closedAt > 0 && Number.isSafeInteger(closedAt) ? { ledger, closedAt } : null;
}
