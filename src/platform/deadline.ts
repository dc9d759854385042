import { TimeoutError } from './errors';

/**
 * Waits for `work` no longer than `ms`. For reads alone: the work is not cancelled, so nothing with an effect may be put
 * under it (an effect gets an AbortSignal of its own).
 * @throws TimeoutError with `code` when the time is up.
 */
export async function answerWithin<T>(ms: number, code: string, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new TimeoutError(code, `no answer within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
