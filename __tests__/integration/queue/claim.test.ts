import { claimant, mustClaim, parcelQueue } from '../../support/queue-fixture';
import { openTestDatabase, type TestDatabase } from '../../support/database';

describe('claiming', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase();
  });
  afterAll(() => database.close());

  it('never hands one job to two of 8 workers that claim 40 at once', async () => {
    const queue = await parcelQueue(database.connection, 'Crowd');
    await queue.enqueueMany(
      Array.from({ length: 40 }, (_, i) => ({ key: `job-${i}`, payload: { label: `${i}` } })),
    );

    const claims = await Promise.all(
      Array.from({ length: 8 }, async (_, worker) => {
        const mine: string[] = [];
        for (;;) {
          const result = await queue.claim(claimant(`w${worker}`));
          if (result.kind === 'empty') return mine;
          mine.push(result.claimed.job.key);
        }
      }),
    );

    const all = claims.flat();
    expect(all).toHaveLength(40);
    expect(new Set(all).size).toBe(40);
  });

  it('gives the payload back as it was put in, even where it looks like an expression', async () => {
    const queue = await parcelQueue(database.connection, 'Odd');
    const payload = {
      label: '$key',
      weight: 2.5,
      note: { $add: [1, 2], deep: ['$$NOW', null, new Date(0)] },
    };
    await queue.enqueue({ key: '$odd', payload });
    const { job, lease } = await mustClaim(queue);
    expect(job).toMatchObject({ ...payload, key: '$odd', phase: 'leased', attempts: 1, epoch: 1 });
    expect(lease).toMatchObject({ attempt: 1, epoch: 1, maxAttempts: 3, jobId: job._id.toHexString() });
    expect(await queue.record(lease, { note: '$label' })).toEqual({ kind: 'recorded' });
    expect((await queue.find(lease.jobId))?.note).toBe('$label');
  });
});
