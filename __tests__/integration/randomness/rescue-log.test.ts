import { TransientError } from '../../../src/platform/errors';
import type { RescueLogEntry } from '../../../src/randomness/rescue/rescue-log';
import { openRandomness, type RandomnessFixture } from '../../support/randomness-fixture';

const operator = { operator: 'ops', reason: 'fees went up' };
let world: RandomnessFixture;
beforeAll(async () => {
  world = await openRandomness({ QUEUE_MAX_RETRIES: '2' });
});
afterEach(() => jest.restoreAllMocks());
afterAll(() => world.close());

describe('the log', () => {
  it('has who is about to do what before it is done, and what came of it', async () => {
    world.chain.drawing(920);
    const { rescueLog } = world.pipeline;
    const during: RescueLogEntry[] = [];
    world.chain.scripts.prepare.push(async () => {
      during.push(...(await rescueLog.page({ raffleId: 920, limit: 5 })).entries);
      throw new TransientError('RPC_UNAVAILABLE', 'down');
    });
    await world.pipeline.rescue.forceSubmit({ requestId: 'logged', raffleId: 920 }, operator);
    expect(during).toMatchObject([
      {
        action: 'FORCE_SUBMIT',
        requestId: 'logged',
        raffleId: 920,
        jobId: null,
        ...operator,
        result: 'unfinished',
      },
    ]);
    const { entries, isLast } = await rescueLog.page({ raffleId: 920, limit: 5 });
    expect(entries).toMatchObject([
      {
        result: 'refused',
        jobId: (await world.job('logged'))._id.toHexString(),
        details: { message: 'not delivered: the job is retrying (down)' },
      },
    ]);
    expect(isLast).toBe(true);
    expect(await world.pipeline.audit.verifyChain()).toMatchObject({ kind: 'intact' });
  });

  it('tells of a command that failed', async () => {
    world.chain.drawing(921);
    await world.submit('failing', 921);
    const outage = new Error('the database is away');
    jest.spyOn(world.pipeline.queue, 'claim').mockRejectedValueOnce(outage);
    await expect(
      world.pipeline.rescue.forceSubmit({ requestId: 'failing', raffleId: 921 }, operator),
    ).rejects.toBe(outage);
    expect((await world.pipeline.rescueLog.page({ raffleId: 921, limit: 5 })).entries).toMatchObject([
      { result: 'error', details: { message: 'the database is away' } },
    ]);
  });
});
