import { createConnection, type Connection } from 'mongoose';
import { RejectedError, TransientError } from '../../../src/platform/errors';
import type { DeadLetterRepository } from '../../../src/queue/dead-letters';
import { queueHealthStatus } from '../../../src/randomness/http/queue-health-status';
import type { RandomnessPipeline } from '../../../src/randomness/randomness.pipeline';
import { deadJob } from '../../support/dead-job';
import { FaultyProxy } from '../../support/queue-proxy';
import { openPipeline, openRandomness, type RandomnessFixture } from '../../support/randomness-fixture';
import { deadLetterRepository } from '../../support/worker-fixture';

const operator = { operator: 'ops', reason: 'the raffle was cancelled' };
let world: RandomnessFixture;
let records: DeadLetterRepository;
let next = 1;

beforeAll(async () => {
  world = await openRandomness({ QUEUE_MAX_RETRIES: '2' });
  records = await deadLetterRepository(world.connection);
});
afterEach(() => jest.restoreAllMocks());
afterAll(() => world.close());

async function deadAndOver(): Promise<{ id: string; key: string }> {
  const { id, raffle } = await deadJob(world, next++);
  world.chain.raffles.get(raffle)!.status = 'CANCELLED';
  return { id, key: (await world.job(id)).key };
}

const isOpen = async (key: string): Promise<boolean> =>
  (await records.find('randomness', key))?.replayedAt === null;

it('clears the dead letter, and the queue is healthy again', async () => {
  const { id, key } = await deadAndOver();
  const healthNow = async () => queueHealthStatus(await (await world.openAnother()).states.getMetrics());
  expect([await isOpen(key), await healthNow()]).toEqual([true, 'unhealthy']);
  expect(await world.pipeline.rescue.discard(id, operator)).toMatchObject({
    kind: 'done',
    details: { state: 'dead-lettered', attemptCount: 2, lastError: 'insufficient fee' },
  });
  expect(await world.pipeline.rescue.find(id)).toBeNull();
  expect([await isOpen(key), await healthNow()]).toEqual([false, 'healthy']);
  // A projection that was on its way all the time opens nothing again.
  await world.pipeline.projector.projectPending();
  expect(await isOpen(key)).toBe(false);
  expect(await world.pipeline.rescue.discard(id, operator)).toMatchObject({ kind: 'not_found' });
  expect((await world.pipeline.rescueLog.page({ limit: 2 })).entries).toMatchObject([
    { action: 'DISCARD', result: 'not_found', jobId: null },
    { action: 'DISCARD', result: 'done', ...operator, details: { attemptCount: 2 } },
  ]);
});

it('is refused for what is not dead, and while the raffle waits or nobody can say', async () => {
  const { rescue } = world.pipeline;
  world.chain.drawing(900);
  await world.submit('alive', 900);
  expect(await rescue.discard('alive', operator)).toEqual({
    kind: 'refused',
    message: 'the job is queued, not dead: there is nothing to discard',
  });
  const { id } = await deadJob(world, next++);
  expect(await rescue.discard(id, operator)).toEqual({
    kind: 'refused',
    message: `the raffle still waits for its randomness; "re-enqueue ${id}" gives it another try`,
  });
  world.chain.scripts.read.push(new TransientError('RPC_UNAVAILABLE', 'down'));
  expect(await rescue.discard(id, operator)).toMatchObject({ kind: 'refused' });
  expect(await world.job(id)).toMatchObject({ phase: 'dead' });
  // The contract shows no such raffle: nobody waits for it.
  world.chain.scripts.read.push(new RejectedError('CONTRACT_REJECTED', 'contract error 1'));
  expect(await rescue.discard(id, operator)).toMatchObject({ kind: 'done' });
});

it('takes one whose time on chain is over, although its raffle waits for the fallback', async () => {
  world.chain.drawing(901);
  await world.pipeline.service.submit({
    requestId: 'too-late',
    raffleId: 901,
    source: 'event',
    requestedAtLedger: world.chain.ledger - 200,
  });
  await world.tryOnce('too-late');
  await world.pipeline.projector.projectPending();
  expect((await world.pipeline.rescueLists.draws()).find(({ raffleId }) => raffleId === 901)).toMatchObject({
    status: 'stuck',
    nextStep: 'have the raffle fall back, then discard too-late',
  });
  expect(await world.pipeline.rescue.discard('too-late', operator)).toMatchObject({ kind: 'done' });
});

it('waits for the projection of a death, so that none comes after it', async () => {
  const raffle = next++;
  world.chain.drawing(raffle);
  await world.submit('just-died', raffle);
  await world.pipeline.rescue.forceFail('just-died', operator);
  world.chain.raffles.get(raffle)!.status = 'CANCELLED';
  const { key } = await world.job('just-died');
  // Whether or not force-fail has projected it by then.
  await world.connection
    .collection('randomnessJobs')
    .updateOne({ key }, { $set: { deadLetterPending: true } });
  expect(await world.pipeline.rescue.discard('just-died', operator)).toMatchObject({ kind: 'done' });
  await world.pipeline.projector.projectPending();
  expect(await isOpen(key)).toBe(false);
});

it('is refused, as whatever else is, while a transaction of the dead job may land', async () => {
  const { chain, pipeline } = world;
  const raffle = next++;
  chain.drawing(raffle);
  await world.submit('in-flight', raffle);
  chain.scripts.confirm.push(new TransientError('RPC_UNAVAILABLE', 'down'));
  await world.tryOnce('in-flight');
  const { txHash } = await world.job('in-flight');
  // Looked at by the give-up and by all but the last of these.
  for (let look = 0; look < 4; look++) chain.scripts.confirm.push({ kind: 'unknown', hash: txHash! });
  await pipeline.rescue.forceFail('in-flight', operator);
  for (const result of [
    await pipeline.rescue.discard('in-flight', operator),
    await pipeline.rescue.reEnqueue('in-flight', operator),
    await pipeline.rescue.forceSubmit({ requestId: 'in-flight', raffleId: raffle }, operator),
    await pipeline.rescue.forceFail('in-flight', operator),
  ]) {
    expect(result).toEqual({
      kind: 'refused',
      message: `its transaction ${txHash} may still land: look again shortly`,
    });
  }
  // It did land.
  expect(await pipeline.rescue.discard('in-flight', operator)).toEqual({
    kind: 'refused',
    message: 'the job is confirmed, not dead: there is nothing to discard',
  });
});

it('and a re-enqueue at the same time: one of them, and never an open dead letter', async () => {
  const { id, key } = await deadAndOver();
  // The raffle is read once each; for the re-enqueue it seems to wait still.
  const raffle = [...world.chain.raffles.values()].at(-1)!;
  raffle.status = 'DRAWING';
  const waiting = await world.pipeline.contract.view(await world.job(id), new AbortController().signal);
  raffle.status = 'CANCELLED';
  const looked = new Promise<void>((resolve) => {
    jest.spyOn(world.pipeline.contract, 'view').mockImplementationOnce(() => {
      resolve();
      return Promise.resolve(waiting);
    });
  });
  const reEnqueued = world.pipeline.rescue.reEnqueue(id, operator);
  await looked;
  const results = await Promise.all([reEnqueued, world.pipeline.rescue.discard(id, operator)]);
  expect(results.filter(({ kind }) => kind === 'done')).toHaveLength(1);
  const left = await world.pipeline.rescue.find(id);
  expect(left === null).toBe(results[1].kind === 'done');
  expect(await isOpen(key)).toBe(false);
});

describe('a command that dies', () => {
  let proxy: FaultyProxy;
  let connection: Connection;
  let doomed: RandomnessPipeline;
  beforeEach(async () => {
    proxy = await FaultyProxy.before(world.uri);
    connection = await createConnection(proxy.uri, { autoIndex: false, autoCreate: false }).asPromise();
    doomed = await openPipeline(connection, {
      submitter: world.chain,
      reader: world.chain,
      feeEstimator: world.chain,
      latestLedger: () => Promise.resolve(world.chain.ledger),
    });
  });
  afterEach(async () => {
    await connection.close(true);
    await proxy.close();
  });

  it.each([
    ['after its intent', 'insert', { isThere: true, isOpen: true }],
    ['after the record was closed', 'deadLetteredRequests', { isThere: true, isOpen: false }],
    ['after the job was removed', 'delete', { isThere: false, isOpen: false }],
  ] as const)('%s leaves a job to discard again, or none', async (_when, call, left) => {
    const { id, key } = await deadAndOver();
    void proxy.loseReplyTo(call).then(() => proxy.down());
    await expect(doomed.rescue.discard(id, operator)).rejects.toThrow();

    const job = await world.pipeline.rescue.find(id);
    expect({ isThere: job !== null, isOpen: await isOpen(key) }).toEqual(left);
    const { entries } = await world.pipeline.rescueLog.page({ limit: 1 });
    expect(entries).toMatchObject([{ action: 'DISCARD', requestId: id, result: 'unfinished', ...operator }]);
    expect((await world.pipeline.rescue.discard(id, operator)).kind).toBe(
      left.isThere ? 'done' : 'not_found',
    );
    expect([await world.pipeline.rescue.find(id), await isOpen(key)]).toEqual([null, false]);
  });
});
