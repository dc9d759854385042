import type { Clock } from '../../platform/clock';

/** Far below the time that 200 ledgers take; the deadlines that it is for need no more. */
const FRESH_MS = 1000;

export type LatestLedger = (signal: AbortSignal) => Promise<number>;

/** One question to the network a second for all lanes of a process, rather than one a job. A failure is not kept. */
export function sharedLedger(ask: LatestLedger, clock: Clock): LatestLedger {
  let known: { sequence: number; atMs: number } | undefined;
  return async (signal) => {
    const atMs = clock.monotonicMs();
    if (known !== undefined && atMs - known.atMs < FRESH_MS) return known.sequence;
    const sequence = await ask(signal);
    known = { sequence, atMs };
    return sequence;
  };
}
