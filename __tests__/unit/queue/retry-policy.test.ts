import fc from 'fast-check';
import { backoffMs, ceilingMs, doublingFrom, retryDelayMs } from '../../../src/queue/retry-policy';

describe('retryDelayMs', () => {
  it('doubles with each attempt and stops at 15 minutes', () => {
    expect([1, 2, 3, 4, 5, 6, 7].map((attempt) => retryDelayMs(attempt, 30_000))).toEqual([
      30_000, 60_000, 120_000, 240_000, 480_000, 900_000, 900_000,
    ]);
    expect(retryDelayMs(5000, 1)).toBe(900_000);
    expect(retryDelayMs(5000, 0)).toBe(0);
  });
});

describe('backoffMs', () => {
  const policy = { baseMs: 2000, multiplier: 2, capMs: 60_000 };

  it('draws from zero to the ceiling', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 200 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (attempt, draw) => {
          const delay = backoffMs(policy, attempt, () => draw);
          expect(delay).toBeGreaterThanOrEqual(0);
          expect(delay).toBeLessThanOrEqual(ceilingMs(policy, attempt));
        },
      ),
    );
    expect(backoffMs(policy, 3, () => 1)).toBe(8000);
    expect(backoffMs(policy, 9, () => 1)).toBe(60_000);
    expect(backoffMs(policy, 9, () => 0)).toBe(0);
  });

  it('never comes back sooner than the counterpart asked, even beyond the cap', () => {
    expect(backoffMs(policy, 1, () => 0, 5000)).toBe(5000);
    expect(backoffMs(policy, 1, () => 1, 120_000)).toBe(120_000);
    expect(backoffMs(doublingFrom(1000), 1, () => 1, 10)).toBe(1000);
  });
});
