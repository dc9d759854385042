import type { ContractEvent, EventHandler, EventOutcome } from '../../../src/ingestion/event-handler';
import { RejectedError, TransientError } from '../../../src/platform/errors';
import { makeWorkerId } from '../../../src/platform/ids';
import { silentLogger } from '../../../src/platform/logger';
import { onlyJob } from '../../../src/queue/claim-scope';
import { contractValue, type ContractValue } from '../../../src/stellar/contract-value';
import { notFollowing } from '../../support/ingestion-fixture';
import { openRandomness, fakeContractId, type RandomnessFixture } from '../../support/randomness-fixture';

let world: RandomnessFixture;
let intake: EventHandler;
let completion: EventHandler;
beforeAll(async () => {
  world = await openRandomness();
  [intake, completion] = world.pipeline.eventHandlers as [EventHandler, EventHandler];
});
afterAll(() => world.close());

let events = 0;
function eventOf(
  topic: string,
  fields: Record<string, ContractValue>,
  more: Partial<ContractEvent> = {},
): ContractEvent {
  events += 1;
  const id = `${String(events).padStart(19, '0')}-0000000000`;
  return {
    id,
    identity: `${1000 + events}:1:0`,
    contractId: fakeContractId,
    ledger: 1000 + events,
    ledgerClosedAt: new Date(Date.now() - 1000),
    transactionHash: 'ab'.repeat(32),
    topics: [contractValue.symbol(topic)],
    value: contractValue.struct(fields),
    raw: { id } as ContractEvent['raw'],
    ...more,
  };
}
const requested = (
  requestId: number,
  raffleId: number,
  more: Record<string, ContractValue> = {},
): ContractEvent =>
  eventOf('RandomnessRequested', {
    raffle_id: contractValue.u32(raffleId),
    request_id: contractValue.u32(requestId),
    prize_amount: contractValue.i128(15_000_0000000n),
    ...more,
  });
const received = (requestId: number, seed: Buffer, more: Partial<ContractEvent> = {}): ContractEvent =>
  eventOf(
    'RandomnessReceived',
    { request_id: contractValue.u32(requestId), seed: contractValue.bytes(seed) },
    more,
  );

async function deliver(handler: EventHandler, event: ContractEvent): Promise<EventOutcome | undefined> {
  const context = {
    signal: new AbortController().signal,
    logger: silentLogger(),
    attempt: 1,
    maxAttempts: 3,
    following: notFollowing,
  };
  return (await handler.handle([event], context))?.get(event.id);
}

describe('a request', () => {
  it('becomes one job, however often it is delivered', async () => {
    const event = requested(1, 10);
    await Promise.all([deliver(intake, event), deliver(intake, event)]);
    await deliver(intake, { ...event, id: `${event.id}again` });
    expect(await world.job('1')).toMatchObject({
      raffleId: 10,
      contractId: fakeContractId,
      source: 'event',
      prizeXlm: 15_000,
      priorityLevel: 1,
      requestedAt: event.ledgerClosedAt,
      requestedAtLedger: event.ledger,
      currentState: 'queued',
    });
    expect(intake.contracts).toEqual([fakeContractId]);
  });

  it('takes its priority from the flag, and no replay from anyone', async () => {
    const prize_amount = contractValue.i128(1n);
    await deliver(intake, requested(2, 11, { prize_amount, priority: contractValue.bool(true) }));
    await deliver(intake, requested(3, 12, { prize_amount, priority: contractValue.symbol('critical') }));
    await deliver(intake, requested(4, 13, { prize_amount, priority: contractValue.symbol('whatever') }));
    expect(
      [await world.job('2'), await world.job('3'), await world.job('4')].map(
        ({ priorityLevel }) => priorityLevel,
      ),
    ).toEqual([1, 1, 10]);
    await deliver(intake, requested(1, 10, { replay: contractValue.bool(true) }));
    expect(await world.job('1')).toMatchObject({ replays: 0 });
  });

  it('of a later version, or for another oracle, is left alone', async () => {
    await deliver(intake, requested(5, 14, { version: contractValue.u32(2) }));
    await deliver(intake, requested(6, 15, { oracle: contractValue.address(`G${'B'.repeat(55)}`) }));
    expect(await world.pipeline.rescue.find('5')).toBeNull();
    expect(await world.pipeline.rescue.find('6')).toBeNull();
  });

  it('that is malformed is refused for good', async () => {
    await expect(deliver(intake, eventOf('RandomnessRequested', {}))).rejects.toMatchObject({
      code: 'MALFORMED_EVENT',
      kind: 'permanent',
    });
    const noStruct = { ...requested(7, 16), value: contractValue.u32(1) };
    await expect(deliver(intake, noStruct)).rejects.toMatchObject({ kind: 'permanent' });
  });
});

describe('a delivery', () => {
  /** A job whose transaction has landed while its confirmation got lost. */
  async function landedUnseen(requestId: number, raffleId: number): Promise<Buffer> {
    world.chain.drawing(raffleId);
    await deliver(intake, requested(requestId, raffleId));
    world.chain.scripts.confirm.push(new TransientError('RPC_UNAVAILABLE', 'down'));
    await world.tryOnce(String(requestId));
    const seed = Buffer.from((await world.job(String(requestId))).randomness!.seed, 'hex');
    world.chain.raffles.set(raffleId, { status: 'FINALIZED', prizeXlm: 1, seed });
    return seed;
  }

  it('ends the job that waits for it, once', async () => {
    const seed = await landedUnseen(20, 200);
    const event = received(20, seed);
    expect(await Promise.all([deliver(completion, event), deliver(completion, event)])).toContainEqual({
      kind: 'handled',
    });
    expect(await deliver(completion, event)).toEqual({ kind: 'handled' });
    const job = await world.job('20');
    expect(job).toMatchObject({
      currentState: 'confirmed',
      phase: 'done',
      txHash: event.transactionHash,
      ledger: event.ledger,
    });
    expect(job.transitions.filter(({ toState }) => toState === 'confirmed')).toHaveLength(1);
  });

  it('that comes before its job is kept for it', async () => {
    const seed = Buffer.alloc(32, 3);
    const event = received(21, seed);
    expect(await deliver(completion, event)).toMatchObject({ kind: 'postponed' });
    world.chain.drawing(201);
    await deliver(intake, requested(21, 201));
    // The event is one node's word; the raffle itself has to show it.
    expect(await deliver(completion, event)).toMatchObject({ kind: 'postponed' });
    expect(await world.job('21')).toMatchObject({ currentState: 'queued', phase: 'ready', attempts: 0 });
    world.chain.raffles.set(201, { status: 'FINALIZED', prizeXlm: 1, seed });
    expect(await deliver(completion, event)).toEqual({ kind: 'handled' });
    // Not a seed of ours: someone else delivered.
    expect(await world.job('21')).toMatchObject({
      currentState: 'failed',
      phase: 'done',
      lastError: expect.stringContaining('RAFFLE_FINALIZED') as string,
    });
  });

  it('that belongs to no job of ours is given up after an hour', async () => {
    const old = received(22, Buffer.alloc(32), { ledgerClosedAt: new Date(Date.now() - 3_700_000) });
    expect(await deliver(completion, old)).toEqual({ kind: 'handled' });
  });

  it('of a job that a worker holds is left to the worker', async () => {
    const seed = await landedUnseen(23, 203);
    let event: EventOutcome | undefined;
    world.chain.scripts.confirm.push(async () => {
      event = await deliver(completion, received(23, seed));
      throw new TransientError('RPC_UNAVAILABLE', 'down');
    });
    await world.tryOnce('23');
    expect(event).toMatchObject({ kind: 'postponed', reason: 'a worker holds its job' });
  });

  it('takes a job back from the dead letters that its worker died over', async () => {
    const seed = await landedUnseen(25, 205);
    const { _id, attempts } = await world.job('25');
    // Its last attempts go to workers that die while they hold it.
    for (let attempt = attempts; attempt < 5; attempt++) {
      await world.pipeline.queue.claim({ workerId: makeWorkerId(), lane: 0 }, onlyJob(_id.toHexString()));
      await world.connection
        .collection('randomnessJobs')
        .updateOne({ _id }, { $set: { 'lease.expiresAt': new Date(0) } });
      await world.pipeline.queue.tidy();
    }
    await world.pipeline.projector.projectPending();
    expect(await world.job('25')).toMatchObject({ currentState: 'dead-lettered', phase: 'dead' });
    const event = received(25, seed);
    expect(await deliver(completion, event)).toEqual({ kind: 'handled' });
    expect(await world.job('25')).toMatchObject({
      currentState: 'confirmed',
      phase: 'done',
      txHash: event.transactionHash,
    });
  });

  it('of another’s seed leaves a dead letter where it is', async () => {
    world.chain.drawing(206);
    await deliver(intake, requested(26, 206));
    world.chain.scripts.prepare.push(new RejectedError('CONTRACT_REVERT', 'the contract reverted'));
    await world.tryOnce('26');
    expect(await deliver(completion, received(26, Buffer.alloc(32, 5)))).toEqual({ kind: 'handled' });
    expect(await world.job('26')).toMatchObject({ currentState: 'failed', phase: 'dead' });
  });

  it('without its request finds the job by the raffle', async () => {
    const seed = await landedUnseen(24, 204);
    const event = eventOf('randomness_received', {
      raffle_id: contractValue.u32(204),
      seed: contractValue.bytes(seed),
    });
    expect(await deliver(completion, event)).toEqual({ kind: 'handled' });
    expect((await world.job('24')).currentState).toBe('confirmed');
  });
});
