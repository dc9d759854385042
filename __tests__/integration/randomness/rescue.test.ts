import { RejectedError, TransientError } from '../../../src/platform/errors';
import { makeWorkerId } from '../../../src/platform/ids';
import { onlyJob } from '../../../src/queue/claim-scope';
import { deadJob } from '../../support/dead-job';
import { openRandomness, type RandomnessFixture } from '../../support/randomness-fixture';
import { until } from '../../support/worker-fixture';

const operator = { operator: 'ops', reason: 'fees went up' };
let world: RandomnessFixture;
let next = 1;
beforeAll(async () => {
  world = await openRandomness({ QUEUE_MAX_RETRIES: '2' });
});
afterEach(() => jest.restoreAllMocks());
afterAll(() => world.close());

const dead = (more: Parameters<RandomnessFixture['submit']>[2] = {}) => deadJob(world, next++, more);

describe('re-enqueue', () => {
  it('starts a new life with the old seed, priority and history', async () => {
    const { id } = await dead({ priority: 'high' });
    const before = await world.job(id);
    expect(await world.pipeline.rescue.reEnqueue(id, operator)).toMatchObject({ kind: 'done' });
    const after = await world.job(id);
    expect(after).toMatchObject({
      currentState: 'queued',
      phase: 'ready',
      attempts: 0,
      attemptCount: 0,
      priorityLevel: 1,
      replays: 1,
      randomness: before.randomness,
    });
    expect(after.transitions.at(-1)).toMatchObject({ reason: 'Re-enqueued by an operator' });
    expect(after.transitions.length).toBe(before.transitions.length + 1);
    expect(await world.tryOnce(id)).toMatchObject({ ending: 'completed' });
    expect((await world.job(id)).currentState).toBe('confirmed');
    const { rows } = await world.pipeline.audit.page({
      requestId: id,
      events: ['rescue_re_enqueue'],
      limit: 5,
    });
    expect(rows).toMatchObject([{ data: { ...operator, result: 'done' } }]);
  });

  it('replays once of two at the same time', async () => {
    const { id } = await dead();
    const results = await Promise.all([1, 2, 3].map(() => world.pipeline.rescue.reEnqueue(id, operator)));
    expect(results.map(({ kind }) => kind).sort()).toEqual(['done', 'refused', 'refused']);
    expect((await world.job(id)).replays).toBe(1);
  });

  it('is refused for a raffle that is over, and for a job that is not dead', async () => {
    const { id, raffle } = await dead();
    world.chain.raffles.get(raffle)!.status = 'CANCELLED';
    expect(await world.pipeline.rescue.reEnqueue(id, operator)).toEqual({
      kind: 'refused',
      message: `the raffle is cancelled, so nothing is left to deliver; "discard ${id}" clears the dead letter`,
    });
    world.chain.drawing(900);
    await world.submit('alive', 900);
    expect(await world.pipeline.rescue.reEnqueue('alive', operator)).toMatchObject({ kind: 'refused' });
    expect(await world.pipeline.rescue.reEnqueue('nobody', operator)).toMatchObject({ kind: 'not_found' });
  });
});

describe('force-submit', () => {
  it('delivers a dead job at once, and one that nobody ever queued', async () => {
    const { id, raffle } = await dead();
    expect(
      await world.pipeline.rescue.forceSubmit({ requestId: id, raffleId: raffle }, operator),
    ).toMatchObject({
      kind: 'done',
      details: { state: 'confirmed' },
    });
    world.chain.drawing(901);
    expect(
      await world.pipeline.rescue.forceSubmit(
        { requestId: 'never-seen', raffleId: 901, prizeXlm: 5 },
        operator,
      ),
    ).toMatchObject({ kind: 'done' });
    expect(await world.job('never-seen')).toMatchObject({
      currentState: 'confirmed',
      source: 'operator',
      priorityLevel: 1,
    });
    expect(world.chain.raffles.get(901)?.seed).toBeDefined();
  });

  it('and the queue never both deliver', async () => {
    world.chain.drawing(902);
    await world.submit('contended', 902);
    const before = world.chain.built.length;
    const results = await Promise.all([
      world.tryOnce('contended'),
      world.pipeline.rescue.forceSubmit({ requestId: 'contended', raffleId: 902 }, operator),
      world.tryOnce('contended'),
      world.pipeline.rescue.forceSubmit({ requestId: 'contended', raffleId: 902 }, operator),
    ]);
    expect(results.filter(({ kind }) => kind === 'ran' || kind === 'done')).toHaveLength(1);
    expect(world.chain.built.length - before).toBe(1);
  });

  it('leaves a job to the worker that holds it', async () => {
    world.chain.drawing(903);
    await world.submit('held', 903);
    const job = await world.job('held');
    await world.pipeline.queue.claim({ workerId: makeWorkerId(), lane: 0 }, onlyJob(job._id.toHexString()));
    const rescue = world.pipeline.rescue;
    expect(await rescue.forceSubmit({ requestId: 'held', raffleId: 903 }, operator)).toMatchObject({
      kind: 'refused',
    });
    expect(await rescue.forceFail('held', operator)).toMatchObject({ kind: 'refused' });
    expect(await world.job('held')).toMatchObject({ phase: 'leased', currentState: 'queued' });
  });

  it('says what it would do, before', async () => {
    world.chain.drawing(904, 600);
    const estimates = jest.spyOn(world.chain, 'estimate');
    expect(
      await world.pipeline.rescue.planForceSubmit({ requestId: 'preview', raffleId: 904 }),
    ).toMatchObject({
      method: 'VRF',
      contractStatus: 'drawing',
      prizeXlm: 600,
      jobId: null,
      sourceAccount: expect.stringMatching(/^G/) as string,
      feeClass: 'urgent',
      feeEstimateStroops: '80120',
      feeProblem: null,
      refusal: null,
    });
    expect(await world.pipeline.rescue.find('preview')).toBeNull();
    expect(estimates.mock.calls).toMatchObject([[expect.anything(), 'urgent', expect.anything()]]);
    // And so it does, whatever the raffle's own priority.
    await world.submit('preview', 904, { prizeXlm: 5 });
    await world.pipeline.rescue.forceSubmit({ requestId: 'preview', raffleId: 904 }, operator);
    expect(world.chain.submissionOf('preview').feeClass).toBe('urgent');
    expect(await world.job('preview')).toMatchObject({ currentState: 'confirmed', urgent: false });
  });

  it('makes no job where it is refused', async () => {
    world.chain.drawing(910);
    world.chain.raffles.get(910)!.status = 'CANCELLED';
    const request = { requestId: 'refused', raffleId: 910 };
    expect(await world.pipeline.rescue.forceSubmit(request, operator)).toEqual({
      kind: 'refused',
      message: 'the raffle is cancelled',
    });
    world.chain.scripts.read.push(new RejectedError('CONTRACT_REJECTED', 'contract error 1'));
    expect(
      await world.pipeline.rescue.forceSubmit({ requestId: 'refused', raffleId: 911 }, operator),
    ).toMatchObject({ kind: 'refused', message: expect.stringContaining('no such raffle') as string });
    expect(
      await world.pipeline.rescue.forceSubmit({ requestId: 'refused', raffleId: null }, operator),
    ).toMatchObject({ kind: 'refused', message: expect.stringContaining('raffleId') as string });
    expect(await world.pipeline.rescue.find('refused')).toBeNull();
  });

  it('is of the raffle that the request is known under', async () => {
    world.chain.drawing(912);
    world.chain.drawing(913);
    await world.submit('of-912', 912);
    expect(await world.pipeline.rescue.forceSubmit({ requestId: 'of-912', raffleId: 913 }, operator)).toEqual(
      { kind: 'refused', message: 'request of-912 is of raffle 912, not 913' },
    );
    expect(
      await world.pipeline.rescue.forceSubmit({ requestId: 'of-912', raffleId: null }, operator),
    ).toMatchObject({ kind: 'done' });
    expect(world.chain.raffles.get(913)?.status).toBe('DRAWING');
  });
});

describe('force-fail', () => {
  it('ends a waiting job, from queued and from retrying', async () => {
    world.chain.drawing(905);
    world.chain.drawing(906);
    await world.submit('give-up', 905);
    await world.submit('give-up-retrying', 906);
    world.chain.scripts.prepare.push(new TransientError('RPC_UNAVAILABLE', 'down'));
    await world.tryOnce('give-up-retrying');
    for (const id of ['give-up', 'give-up-retrying']) {
      expect(await world.pipeline.rescue.forceFail(id, operator)).toMatchObject({ kind: 'done' });
      await world.pipeline.projector.projectPending();
      expect(await world.job(id)).toMatchObject({
        currentState: 'failed',
        phase: 'dead',
        lastError: 'given up by an operator',
      });
      expect(await world.pipeline.rescue.forceFail(id, operator)).toMatchObject({ kind: 'refused' });
    }
    expect((await world.path('give-up-retrying')).slice(-2)).toEqual(['generating', 'failed']);
  });
});

describe('a job whose transaction may still land', () => {
  it('ends, given up, as the transaction does', async () => {
    world.chain.drawing(950);
    await world.submit('in-flight', 950);
    world.chain.scripts.confirm.push(new TransientError('RPC_UNAVAILABLE', 'down'));
    await world.tryOnce('in-flight');
    const { txHash } = await world.job('in-flight');
    world.chain.scripts.confirm.push({ kind: 'unknown', hash: txHash! });
    expect(await world.pipeline.rescue.forceFail('in-flight', operator)).toMatchObject({
      kind: 'done',
      message: expect.stringContaining(`its transaction ${txHash} may still land`) as string,
    });
    // Nobody knows yet: neither a dead letter nor a failed job is told of.
    expect(await world.job('in-flight')).toMatchObject({ currentState: 'retrying', phase: 'dead' });
    await world.pipeline.projector.projectPending();
    expect(await world.job('in-flight')).toMatchObject({ currentState: 'confirmed', phase: 'done', txHash });
    const { rows } = await world.pipeline.audit.page({ requestId: 'in-flight', limit: 10 });
    expect(rows.map(({ event }) => event)).not.toContain('abandoned');
  });

  it('fails, given up, once the transaction has expired', async () => {
    world.chain.drawing(951);
    await world.submit('never-lands', 951);
    world.chain.scripts.confirm.push(new TransientError('RPC_UNAVAILABLE', 'down'));
    await world.tryOnce('never-lands');
    const { txHash } = await world.job('never-lands');
    world.chain.scripts.confirm.push({ kind: 'expired', hash: txHash! });
    expect(await world.pipeline.rescue.forceFail('never-lands', operator)).toMatchObject({
      kind: 'done',
      details: { state: 'failed' },
    });
    expect(await world.job('never-lands')).toMatchObject({ currentState: 'failed', phase: 'dead' });
  });
});

describe('a worker that dies', () => {
  it.each([
    ['queued', [], ['failed']],
    ['generating', ['generating'], ['generating', 'retrying', 'dead-lettered']],
  ] as const)(
    'in %s until the attempts are spent leaves a dead letter in a legal state',
    async (state, steps, path) => {
      const own = await openRandomness({ QUEUE_MAX_RETRIES: '1', QUEUE_LEASE_MS: '1000' });
      try {
        await own.submit('x', 1);
        const claim = await own.pipeline.queue.claim({ workerId: makeWorkerId(), lane: 0 });
        if (claim.kind === 'empty') throw new Error('no job');
        for (const step of steps) await own.pipeline.states.transitionState(claim.claimed, step);
        expect((await own.job('x')).currentState).toBe(state);
        await until('the lease is swept', async () => {
          await own.pipeline.queue.tidy();
          return (await own.job('x')).phase === 'dead';
        });
        await own.pipeline.projector.projectPending();
        expect(await own.path('x')).toEqual(path);
        const { rows } = await own.pipeline.audit.page({ limit: 5 });
        expect(rows).toMatchObject([{ event: 'abandoned', data: { code: 'WORKER_DIED' } }]);
      } finally {
        await own.close();
      }
    },
  );
});
