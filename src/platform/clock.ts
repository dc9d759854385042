import { performance } from 'node:perf_hooks';

/** Time as a constructor argument, so that tests can move it. */
export interface Clock {
  /** This process's wall clock, epoch milliseconds. Never compared with another machine's. */
  now(): number;
  /** Milliseconds that only ever grow, from an arbitrary start. For deadlines and durations. */
  monotonicMs(): number;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
};

/** Resolves after `ms`, or at once when `signal` aborts. The caller looks at the signal; an abort is not an error here. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) {
      resolve();
      return;
    }
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener('abort', done, { once: true });
  });
}
