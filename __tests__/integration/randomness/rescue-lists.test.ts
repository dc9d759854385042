import { RejectedError } from '../../../src/platform/errors';
import { jobListItem } from '../../../src/randomness/http/views';
import type { DrawReport } from '../../../src/randomness/rescue/stuck-report';
import { deadJob } from '../../support/dead-job';
import { openRandomness, type RandomnessFixture } from '../../support/randomness-fixture';

let next = 1;
let world: RandomnessFixture;
beforeAll(async () => {
  world = await openRandomness({ QUEUE_MAX_RETRIES: '2' });
});
afterEach(() => jest.restoreAllMocks());
afterAll(() => world.close());

describe('the stuck report', () => {
  const reports = async (): Promise<Record<string, DrawReport>> => {
    const draws = await world.pipeline.rescueLists.draws();
    return Object.fromEntries(draws.map((draw) => [draw.requestId, draw]));
  };

  it('tells late jobs from those that are in time', async () => {
    world.chain.drawing(907);
    world.chain.drawing(908);
    await world.pipeline.service.submit({
      requestId: 'stuck-by-ledgers',
      raffleId: 907,
      source: 'event',
      requestedAtLedger: world.chain.ledger - 100,
    });
    await world.submit('in-time', 908);
    const byId = await reports();
    expect(byId['stuck-by-ledgers']).toMatchObject({
      status: 'stuck',
      contractStatus: 'drawing',
      queueState: 'queued (ready)',
      ledgerRange: { lagLedgers: 100 },
    });
    expect(byId['in-time']).toMatchObject({ status: 'pending', signals: [] });
    expect(Object.values(byId)[0]?.status).toBe('stuck');
  });

  it('knows dead jobs by what their raffles came to', async () => {
    const waiting = await deadJob(world, next++);
    const cancelled = await deadJob(world, next++);
    const served = await deadJob(world, next++);
    world.chain.raffles.get(cancelled.raffle)!.status = 'CANCELLED';
    const { randomness } = await world.job(served.id);
    const ours = world.chain.raffles.get(served.raffle)!;
    Object.assign(ours, { status: 'FINALIZED', seed: Buffer.from(randomness!.seed, 'hex') });
    const byId = await reports();
    expect(byId[waiting.id]).toMatchObject({
      status: 'stuck',
      contractStatus: 'drawing',
      signals: ['dead letter: INSUFFICIENT_FEE'],
      nextStep: `mend the cause, then re-enqueue ${waiting.id}`,
    });
    expect(byId[cancelled.id]).toMatchObject({ status: 'failed', nextStep: `discard ${cancelled.id}` });
    expect(byId[served.id]).toMatchObject({ status: 'confirmed', nextStep: `discard ${served.id}` });
  });

  it('sends nobody to deliver to a raffle that its contract does not know', async () => {
    const lost = await deadJob(world, next++);
    jest
      .spyOn(world.pipeline.contract, 'view')
      .mockRejectedValue(new RejectedError('CONTRACT_REJECTED', 'contract error 1'));
    expect((await reports())[lost.id]).toMatchObject({
      status: 'stuck',
      contractStatus: 'unknown',
      nextStep: `discard ${lost.id}: its contract knows no such raffle`,
    });
    expect(
      await world.pipeline.rescue.discard(lost.id, { operator: 'ops', reason: 'as the report says' }),
    ).toMatchObject({ kind: 'done' });
  });

  it('counts tries as the preview of a rescue does', async () => {
    const raffle = next++;
    world.chain.drawing(raffle);
    await world.submit('given-up', raffle);
    await world.pipeline.rescue.forceFail('given-up', { operator: 'ops', reason: 'drill' });
    const listed = (await world.pipeline.rescueLists.failed(Number.POSITIVE_INFINITY)).jobs
      .map(jobListItem)
      .find(({ requestId }) => requestId === 'given-up');
    expect(listed?.attemptCount).toBe(0);
    expect((await world.pipeline.rescue.plan('re_enqueue', 'given-up'))?.attemptCount).toBe(0);
    const twice = await deadJob(world, next++);
    expect((await world.pipeline.rescue.plan('re_enqueue', twice.id))?.attemptCount).toBe(2);
  });

  it('lists beyond a page, and says how many there are', async () => {
    const own = await openRandomness();
    try {
      await own.submit('many', 1);
      const { _id: first, ...job } = await own.job('many');
      await own.connection
        .collection('randomnessJobs')
        .insertMany(
          Array.from({ length: 504 }, (_, n) => ({ ...job, key: `many-${n}`, requestId: `many-${n}` })),
        );
      const all = await own.pipeline.rescueLists.all(Number.POSITIVE_INFINITY);
      expect(new Set(all.jobs.map(({ requestId }) => requestId)).size).toBe(505);
      expect(all.jobs[0]?._id).toEqual(first);
      const some = await own.pipeline.rescueLists.all(3);
      expect([some.jobs.length, some.total]).toEqual([3, 505]);
    } finally {
      await own.close();
    }
  });
});
