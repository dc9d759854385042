import { getEventListeners, once } from 'node:events';
import { TimeoutError } from '../../../src/platform/errors';
import { unlessAborted, withinPhaseDeadline } from '../../../src/randomness/processing/phase-deadline';

const untilAborted = async (signal: AbortSignal): Promise<never> => {
  if (!signal.aborted) await once(signal, 'abort');
  throw new Error('stopped');
};

describe('a phase deadline', () => {
  it('stops the work itself and says which phase was late', async () => {
    let stopped = false;
    const phase = withinPhaseDeadline(
      { parent: new AbortController().signal, timeoutMs: 5, code: 'SUBMISSION_TIMEOUT' },
      async (signal) => {
        try {
          return await untilAborted(signal);
        } finally {
          stopped = true;
        }
      },
    );
    await expect(phase).rejects.toMatchObject({ code: 'SUBMISSION_TIMEOUT', kind: 'transient' });
    await expect(phase).rejects.toBeInstanceOf(TimeoutError);
    expect(stopped).toBe(true);
  });

  it('ends with its parent, and not as a timeout', async () => {
    const parent = new AbortController();
    const phase = withinPhaseDeadline({ parent: parent.signal, timeoutMs: 60_000, code: 'X' }, untilAborted);
    parent.abort(new Error('lease lost'));
    await expect(phase).rejects.toThrow('stopped');
    await expect(
      withinPhaseDeadline({ parent: parent.signal, timeoutMs: 1, code: 'X' }, untilAborted),
    ).rejects.toThrow('lease lost');
  });

  it('passes the result on and leaves no listener behind', async () => {
    const parent = new AbortController();
    const remove = jest.spyOn(parent.signal, 'removeEventListener');
    expect(
      await withinPhaseDeadline({ parent: parent.signal, timeoutMs: 1000, code: 'X' }, () =>
        Promise.resolve(7),
      ),
    ).toBe(7);
    expect(remove).toHaveBeenCalledTimes(1);
  });

  it('drops the late answer of work that can’t be cancelled', async () => {
    const controller = new AbortController();
    const answer = unlessAborted(new Promise(() => undefined), controller.signal);
    controller.abort(new Error('too late'));
    await expect(answer).rejects.toThrow('too late');
    expect(await unlessAborted(Promise.resolve(1), new AbortController().signal)).toBe(1);
  });

  describe('leaves no timer and no listener behind', () => {
    beforeEach(() => jest.useFakeTimers());
    afterEach(() => jest.useRealTimers());

    test.each<[string, (signal: AbortSignal, parent: AbortController) => Promise<unknown>]>([
      ['when the phase ends', () => Promise.resolve()],
      ['when it fails', () => Promise.reject(new Error('failed'))],
      [
        'when it is too late',
        (signal) => {
          jest.advanceTimersByTime(5_000);
          return untilAborted(signal);
        },
      ],
      [
        'when its parent ends it',
        (signal, parent) => {
          parent.abort(new Error('lease lost'));
          return untilAborted(signal);
        },
      ],
    ])('%s', async (_, phase) => {
      const parent = new AbortController();
      const deadline = { parent: parent.signal, timeoutMs: 5_000, code: 'X' };
      const running = withinPhaseDeadline(deadline, (signal) => phase(signal, parent));
      await Promise.allSettled([running, unlessAborted(running, parent.signal)]);
      expect(jest.getTimerCount()).toBe(0);
      expect(getEventListeners(parent.signal, 'abort')).toEqual([]);
    });
  });
});
