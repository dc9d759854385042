import { silentLogger } from '../../../src/platform/logger';
import { noMetrics } from '../../../src/platform/metrics';
import type { Lease } from '../../../src/queue/worker-queue';
import { Connectivity } from '../../../src/worker/connectivity';
import { LeaseKeeper } from '../../../src/worker/lease-keeper';
import { createWorkerEvents } from '../../../src/worker/worker-events';

const LEASE_MS = 900;

describe('the lease keeper', () => {
  let nowMs: number;
  let calls: string[][];
  let renew: (leases: readonly Lease[]) => Promise<{ lost: Lease[] }>;
  let keeper: LeaseKeeper;
  let lost: string[];

  const queue = { leaseMs: LEASE_MS, renew: (leases: readonly Lease[]) => renew(leases) };
  const lease = (jobId: string): Lease => ({
    jobId,
    token: `token-${jobId}` as Lease['token'],
    epoch: 1,
    attempt: 1,
    maxAttempts: 3,
    claimant: { workerId: 'w' as Lease['claimant']['workerId'], lane: 0 },
    deadlineMs: nowMs + LEASE_MS * 0.9,
  });
  const hold = (jobId: string) => keeper.hold(queue, lease(jobId), () => lost.push(jobId));
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 10) {
      nowMs += 10;
      await jest.advanceTimersByTimeAsync(10);
    }
  };

  beforeEach(() => {
    jest.useFakeTimers();
    nowMs = 1000;
    calls = [];
    lost = [];
    renew = (leases) => {
      calls.push(leases.map(({ jobId }) => jobId));
      for (const held of leases) held.deadlineMs = nowMs + LEASE_MS * 0.9;
      return Promise.resolve({ lost: [] });
    };
    const events = createWorkerEvents();
    keeper = new LeaseKeeper({
      clock: { now: () => 0, monotonicMs: () => nowMs },
      events,
      connectivity: new Connectivity(silentLogger(), events),
      metrics: noMetrics,
    });
  });
  afterEach(() => {
    keeper.stop();
    jest.useRealTimers();
  });

  it('renews all that is held with one call a beat, and falls silent when nothing is', async () => {
    const a = hold('a');
    const b = hold('b');
    await pass(LEASE_MS * 2);
    expect(calls).toEqual(Array.from({ length: 6 }, () => ['a', 'b']));
    a.drop();
    b.drop();
    await pass(LEASE_MS);
    expect(calls).toHaveLength(6);
    expect(jest.getTimerCount()).toBe(0);
    hold('c');
    await pass(LEASE_MS / 3);
    expect(calls.at(-1)).toEqual(['c']);
    expect(lost).toEqual([]);
  });

  it('reports what the queue calls lost, once, and goes on with the rest', async () => {
    hold('a');
    hold('b');
    const answer = renew;
    renew = async (leases) => {
      await answer(leases);
      return { lost: leases.filter(({ jobId }) => jobId === 'a') };
    };
    await pass(LEASE_MS);
    expect(lost).toEqual(['a']);
    expect(calls).toEqual([['a', 'b'], ['b'], ['b']]);
  });

  it('reports a lease at its deadline when renewals fail or hang, without piling up calls', async () => {
    hold('a');
    let sent = 0;
    renew = () => {
      sent++;
      return new Promise(() => undefined);
    };
    await pass(LEASE_MS * 0.9 - 20);
    expect(lost).toEqual([]);
    await pass(40);
    expect(lost).toEqual(['a']);
    expect(sent).toBe(1);
  });

  it('keeps quiet about a lease whose outcome is being written, and about one that was dropped', async () => {
    const settling = hold('settling');
    const dropped = hold('dropped');
    renew = (leases) => Promise.resolve({ lost: [...leases] });
    settling.settling();
    dropped.drop();
    await pass(LEASE_MS * 2);
    expect(lost).toEqual([]);
  });
});
