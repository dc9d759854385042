import { BusyError, TimeoutError } from '../../platform/errors';

/**
 * Runs one phase under a deadline of its own. The phase gets a signal that aborts when the time is up or when `parent`
 * does, and has to stop by it: nothing is left running behind a timeout, so a retry can't overlap with it.
 * @throws TimeoutError with `code` when the deadline, and not the parent, ended it.
 */
export async function withinPhaseDeadline<T>(
  { parent, timeoutMs, code }: { parent: AbortSignal; timeoutMs: number; code: string },
  phase: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  parent.throwIfAborted();
  const controller = new AbortController();
  const late = new TimeoutError(code, `not done within ${timeoutMs} ms`);
  const followParent = (): void => controller.abort(parent.reason);
  const timer = setTimeout(() => controller.abort(late), timeoutMs);
  parent.addEventListener('abort', followParent, { once: true });
  try {
    return await phase(controller.signal);
  } catch (error) {
    // A phase that only waited for what others use says so itself, deadline or not.
    if (controller.signal.reason === late && !(error instanceof BusyError)) throw late;
    throw error;
  } finally {
    clearTimeout(timer);
    parent.removeEventListener('abort', followParent);
  }
}

/**
 * Settles with `work`, or rejects with the signal's reason as soon as it aborts. Only for work without effects that
 * can't be cancelled, such as a signature asked of a key service: its late answer is dropped.
 */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  let onAbort: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason as Error);
    signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    if (onAbort) signal.removeEventListener('abort', onAbort);
  }
}
