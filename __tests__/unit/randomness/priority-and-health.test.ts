import {
  checkedThresholds,
  defaultPriorityThresholds,
  isHighPriority,
  priorityLevel,
  priorityOf,
  queuePriorityOf,
  stroopsToXlm,
  type PriorityFlag,
} from '../../../src/randomness/jobs/priority';
import { queueHealthStatus } from '../../../src/randomness/http/queue-health-status';
import { toQueueMetrics } from '../../../src/randomness/jobs/queue-metrics';
import { jobStates, type JobState } from '../../../src/randomness/jobs/randomness-lifecycle';
import { judgeSla } from '../../../src/randomness/jobs/sla';

const counts = (some: Partial<Record<JobState, number>>) =>
  ({ ...Object.fromEntries(jobStates.map((state) => [state, 0])), ...some }) as Record<JobState, number>;
const status = (some: Partial<Record<JobState, number>>) => queueHealthStatus(toQueueMetrics(counts(some)));

describe('priority', () => {
  test.each<[number | undefined, PriorityFlag, number]>([
    [10_000, undefined, priorityLevel.high],
    [9_999.99, undefined, priorityLevel.normal],
    [1_000, undefined, priorityLevel.normal],
    [999, undefined, priorityLevel.low],
    [undefined, undefined, priorityLevel.low],
    [-5, undefined, priorityLevel.low],
    [Number.NaN, undefined, priorityLevel.low],
    [1, true, priorityLevel.high],
    [1, 'high', priorityLevel.high],
    [undefined, 'critical', priorityLevel.high],
    [1, false, priorityLevel.low],
    [20_000, true, priorityLevel.high],
  ])('prize %p with flag %p is %p', (prizeXlm, flag, expected) => {
    expect(priorityOf({ prizeXlm, flag }, defaultPriorityThresholds)).toBe(expected);
  });

  it('turns the scale round for the queue', () => {
    expect(queuePriorityOf(priorityLevel.low)).toBe(0);
    expect(queuePriorityOf(priorityLevel.critical)).toBe(10);
    expect([0, 1, 5, 10].map((level) => isHighPriority(level as 0))).toEqual([true, true, false, false]);
  });

  it('refuses thresholds the wrong way round', () => {
    expect(checkedThresholds({ highValueXlm: 5, mediumValueXlm: 5 })).toBeNull();
    expect(checkedThresholds(defaultPriorityThresholds)).toBe(defaultPriorityThresholds);
  });

  it('reads stroops', () => {
    expect(stroopsToXlm(123_4500000n)).toBe(123.45);
    expect(stroopsToXlm(10_000_0000000n)).toBe(10_000);
  });
});

describe('the SLA', () => {
  const requestedAt = new Date(1_000_000);
  it('runs from the ledger of the request, for high priority only', () => {
    expect(judgeSla({ priorityLevel: 1, requestedAt }, 1_005_000, 5000)).toEqual({
      latencyMs: 5000,
      breached: false,
    });
    expect(judgeSla({ priorityLevel: 1, requestedAt }, 1_005_001, 5000)).toEqual({
      latencyMs: 5001,
      breached: true,
    });
    expect(judgeSla({ priorityLevel: 5, requestedAt }, 9_000_000, 5000).breached).toBe(false);
    expect(judgeSla({ priorityLevel: 1, requestedAt }, 999_000, 5000)).toEqual({
      latencyMs: 0,
      breached: false,
    });
  });
});

describe('queue health', () => {
  it('has the specified thresholds', () => {
    expect(status({})).toBe('healthy');
    expect(status({ failed: 5, queued: 50 })).toBe('healthy');
    expect(status({ failed: 6 })).toBe('degraded');
    expect(status({ queued: 47, generating: 1, submitting: 1, confirming: 1, retrying: 1 })).toBe('degraded');
    expect(status({ 'dead-lettered': 1 })).toBe('unhealthy');
    expect(status({ confirmed: 1_000_000 })).toBe('healthy');
  });

  it('sums pending and failed as specified', () => {
    expect(
      toQueueMetrics(
        counts({
          queued: 1,
          generating: 2,
          submitting: 3,
          confirming: 4,
          retrying: 5,
          confirmed: 6,
          failed: 7,
          'dead-lettered': 8,
        }),
      ),
    ).toEqual({
      queuedCount: 1,
      generatingCount: 2,
      submittingCount: 3,
      confirmingCount: 4,
      retryingCount: 5,
      confirmedCount: 6,
      failedCount: 7,
      deadLetteredCount: 8,
      pendingCount: 15,
      totalFailedCount: 15,
    });
  });
});
