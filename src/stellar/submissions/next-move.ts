/** Ledgers after which core drops a queued transaction, and bans its hash for ten more. */
export const QUEUE_LEDGERS = 4;
/** Core replaces a queued transaction only by a fee bump that bids so many times as much per operation. */
export const REPLACEMENT_FACTOR = 10n;
/** Once dropped, any sufficient fee will do. Twice the one that was not enough is a fair guess at it. */
const ESCALATION_FACTOR = 2n;

/**
 * What the node last said to the newest envelope. `none`: it was not asked yet, or its answer never came. `no_funds`: the
 * account that pays for it can't.
 */
export type LastReply =
  { kind: 'none' | 'accepted' | 'try_again' | 'no_funds' } | { kind: 'low_fee'; neededBid: bigint };

export interface Situation {
  lastReply: LastReply;
  latestLedger: number;
  /** The ledger after which the newest envelope was taken into the queue; null when none said so. */
  acceptedAtLedger: number | null;
  /** Stroops per operation: of the newest envelope, by the fee policy now, and at the most. */
  currentBid: bigint;
  recommendedBid: bigint;
  cap: bigint;
  /** Ledgers that an accepted transaction may stay out before it is bumped. */
  bumpAfterLedgers: number;
  /** Whether the source account pays for it and not the oracle account, as in a fee bump. */
  isPaidBySource: boolean;
}

export type Move = { kind: 'wait' } | { kind: 'resend' } | { kind: 'bump'; bid: bigint };

/** What to do for a transaction that is in no ledger yet. By stellar-core's rules for its queue. */
export function nextMove(situation: Situation): Move {
  const { lastReply, latestLedger, acceptedAtLedger, currentBid, recommendedBid, cap } = situation;
  if (lastReply.kind === 'low_fee') {
    const bid = max(lastReply.neededBid, recommendedBid);
    return bid > currentBid && bid <= cap ? { kind: 'bump', bid } : { kind: 'resend' };
  }
  if (lastReply.kind === 'no_funds') {
    // In a fee bump of the same bid the oracle account pays, and the source account lends its number alone.
    return situation.isPaidBySource
      ? { kind: 'bump', bid: max(currentBid, min(recommendedBid, cap)) }
      : { kind: 'resend' };
  }
  if (lastReply.kind === 'none' || lastReply.kind === 'try_again' || acceptedAtLedger === null) {
    return { kind: 'resend' };
  }
  const ledgersOut = latestLedger - acceptedAtLedger;
  const isDropped = ledgersOut > QUEUE_LEDGERS;
  if (ledgersOut < situation.bumpAfterLedgers) return isDropped ? { kind: 'resend' } : { kind: 'wait' };
  const least = currentBid * (isDropped ? ESCALATION_FACTOR : REPLACEMENT_FACTOR);
  const bid = max(least, recommendedBid);
  if (bid <= cap) return { kind: 'bump', bid };
  if (!isDropped) return { kind: 'wait' };
  return cap > currentBid ? { kind: 'bump', bid: cap } : { kind: 'resend' };
}

const max = (a: bigint, b: bigint): bigint => (a > b ? a : b);
const min = (a: bigint, b: bigint): bigint => (a < b ? a : b);
