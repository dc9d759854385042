/** Exponential back-off. The delay before attempt n+1 is drawn from 0 … baseMs × multiplier^(n−1), at most capMs. */
export interface RetryPolicy {
  baseMs: number;
  multiplier: number;
  capMs: number;
}

const DEFAULT_CAP_MS = 15 * 60_000;

/** The ceiling of the wait after the given attempt (from 1): doubles each time, 15 minutes at most. */
export function retryDelayMs(attempt: number, baseMs: number): number {
  return ceilingMs(doublingFrom(baseMs), attempt);
}

/** The usual policy: doubling from `baseMs`, capped at 15 minutes. */
export function doublingFrom(baseMs: number): RetryPolicy {
  return { baseMs, multiplier: 2, capMs: DEFAULT_CAP_MS };
}

export function ceilingMs({ baseMs, multiplier, capMs }: RetryPolicy, attempt: number): number {
  // Infinity × 0 is not a number: a base of 0 stays 0 however large the power grows.
  if (baseMs === 0) return 0;
  return Math.min(capMs, baseMs * multiplier ** Math.max(0, attempt - 1));
}

/**
 * Full jitter, so that jobs that failed together don't return together. `retryAfterMs` is the counterpart's own wish: never
 * sooner than that, even above the cap.
 * @param random in 0 … 1, as Math.random
 */
export function backoffMs(
  policy: RetryPolicy,
  attempt: number,
  random: () => number,
  retryAfterMs = 0,
): number {
  return Math.max(Math.round(random() * ceilingMs(policy, attempt)), retryAfterMs);
}
