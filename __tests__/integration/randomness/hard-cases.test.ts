import { Keypair } from '@stellar/stellar-sdk';
import mongoose from 'mongoose';
import type { ContractEvent, EventHandler } from '../../../src/ingestion/event-handler';
import { silentLogger } from '../../../src/platform/logger';
import type { RandomnessPipeline } from '../../../src/randomness/randomness.pipeline';
import { contractValue } from '../../../src/stellar/contract-value';
import { signerFromSecret, type Signer } from '../../../src/stellar/keys';
import { notFollowing } from '../../support/ingestion-fixture';
import { FaultyProxy } from '../../support/queue-proxy';
import {
  fakeContractId,
  openPipeline,
  openRandomness,
  oracleSecret,
  type RandomnessFixture,
  randomnessSettingsFor,
} from '../../support/randomness-fixture';
import { heartbeatRepository, testPool, until } from '../../support/worker-fixture';

const REDEPLOYED = 'CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSC';
const operator = { operator: 'ops', reason: 'a test' };

let world: RandomnessFixture;
let raffles = 0;
beforeAll(async () => {
  world = await openRandomness();
});
afterAll(() => world.close());

function drawn(prizeXlm = 10): number {
  raffles += 1;
  world.chain.drawing(raffles, prizeXlm);
  return raffles;
}

const open = (overrides: Record<string, string> = {}, signer?: Signer): Promise<RandomnessPipeline> =>
  openPipeline(world.connection, {
    submitter: world.chain,
    reader: world.chain,
    feeEstimator: world.chain,
    latestLedger: () => Promise.resolve(world.chain.ledger),
    settings: randomnessSettingsFor(overrides),
    ...(signer === undefined ? {} : { signer }),
  });

const eventOf = (
  topic: string,
  fields: Record<string, ReturnType<typeof contractValue.u32>>,
): ContractEvent => ({
  id: `${topic}-1`,
  identity: 'x',
  contractId: fakeContractId,
  ledger: world.chain.ledger,
  ledgerClosedAt: new Date(),
  transactionHash: 'ab'.repeat(32),
  topics: [contractValue.symbol(topic)],
  value: contractValue.struct(fields),
  raw: { id: 'r' } as ContractEvent['raw'],
});

async function deliver(
  { eventHandlers }: RandomnessPipeline,
  which: 0 | 1,
  event: ContractEvent,
): Promise<void> {
  await (eventHandlers as [EventHandler, EventHandler])[which].handle([event], {
    signal: new AbortController().signal,
    logger: silentLogger(),
    attempt: 1,
    maxAttempts: 3,
    following: notFollowing,
  });
}

async function workOff(pipeline: RandomnessPipeline, requestIds: readonly string[]): Promise<void> {
  const pool = testPool({ sources: pipeline.work, heartbeats: await heartbeatRepository(world.connection) });
  await pool.start();
  try {
    await until('all to end', async () => {
      const jobs = await Promise.all(requestIds.map((id) => pipeline.rescue.find(id)));
      return jobs.every((job) => job?.phase === 'done' || job?.phase === 'dead');
    });
  } finally {
    await pool.stop();
  }
}

describe('a request', () => {
  it('of a contract that replaced another is not the old one of the same number', async () => {
    const raffle = drawn();
    await world.submit('1', raffle);
    await world.tryOnce('1');
    world.chain.drawing(raffle);
    const redeployed = await open({ RAFFLE_CONTRACT_ID: REDEPLOYED });
    expect(
      await redeployed.service.submit({ requestId: '1', raffleId: raffle, source: 'event' }),
    ).toMatchObject({ alreadyThere: false });
    await workOff(redeployed, ['1']);
    expect(await redeployed.rescue.find('1')).toMatchObject({
      contractId: REDEPLOYED,
      currentState: 'confirmed',
    });
    expect(world.chain.built).toHaveLength(2);
  });

  it('by hand for the wrong raffle doesn’t take the place of the contract’s own', async () => {
    const raffle = drawn();
    world.chain.raffles.set(7777, { status: 'CANCELLED', prizeXlm: 1 });
    await world.submit('50', 7777);
    await world.tryOnce('50');
    await expect(world.submit('50', raffle)).rejects.toMatchObject({ status: 409, code: 'REQUEST_ID_TAKEN' });
    await deliver(
      world.pipeline,
      0,
      eventOf('RandomnessRequested', {
        request_id: contractValue.u32(50),
        raffle_id: contractValue.u32(raffle),
      }),
    );
    await world.tryOnce('50');
    expect(await world.job('50')).toMatchObject({ raffleId: raffle, currentState: 'confirmed' });
  });

  it('by hand becomes the contract’s once the contract asks, and lives again if it had died', async () => {
    const raffle = drawn();
    await world.submit('51', raffle);
    expect(await world.pipeline.rescue.forceFail('51', operator)).toMatchObject({ kind: 'done' });
    const event = eventOf('RandomnessRequested', {
      request_id: contractValue.u32(51),
      raffle_id: contractValue.u32(raffle),
    });
    await deliver(world.pipeline, 0, event);
    expect(await world.job('51')).toMatchObject({ currentState: 'queued', requestedAtLedger: event.ledger });
    await world.tryOnce('51');
    expect((await world.job('51')).currentState).toBe('confirmed');
    const early = drawn();
    world.chain.raffles.get(early)!.status = 'OPEN';
    await world.submit('54', early);
    await world.tryOnce('54');
    expect((await world.job('54')).dueAt.getTime()).toBeGreaterThan(Date.now() + 3_000);
    world.chain.raffles.get(early)!.status = 'DRAWING';
    await deliver(
      world.pipeline,
      0,
      eventOf('RandomnessRequested', {
        request_id: contractValue.u32(54),
        raffle_id: contractValue.u32(early),
      }),
    );
    // At once: the contract has asked.
    expect((await world.job('54')).dueAt.getTime()).toBeLessThan(Date.now() + 1_000);
    await workOff(world.pipeline, ['54']);
    expect((await world.job('54')).currentState).toBe('confirmed');
    // Asked for again, it stays what it is.
    await deliver(world.pipeline, 0, event);
    expect((await world.job('51')).currentState).toBe('confirmed');
  });

  it('for another contract than the configured one is refused: its seed would be this one’s', async () => {
    await expect(
      world.pipeline.service.submit({
        requestId: '52',
        raffleId: drawn(),
        contractId: REDEPLOYED,
        source: 'api',
      }),
    ).rejects.toMatchObject({ status: 400 });
  });

  it('that was delivered, forgotten and read anew after a rotation ends as delivered', async () => {
    const raffle = drawn(600);
    await world.submit('53', raffle);
    await world.tryOnce('53');
    await world.connection.collection('randomnessJobs').deleteOne({ requestId: '53' });
    const rotated = await open({
      ORACLE_SECRET_KEY: Keypair.fromRawEd25519Seed(Buffer.alloc(32, 8)).secret(),
    });
    await rotated.service.submit({ requestId: '53', raffleId: raffle, source: 'event' });
    await workOff(rotated, ['53']);
    expect((await rotated.rescue.find('53'))?.currentState).toBe('confirmed');
  });
});

it('what happens to one job ends no other, though its claim lost its answer', async () => {
  const proxy = await FaultyProxy.before(world.uri);
  const connection = await mongoose
    .createConnection(`${proxy.uri}&retryWrites=false`, { autoIndex: false, autoCreate: false })
    .asPromise();
  try {
    const far = await openPipeline(connection, {
      submitter: world.chain,
      reader: world.chain,
      feeEstimator: world.chain,
      latestLedger: () => Promise.resolve(world.chain.ledger),
      settings: randomnessSettingsFor(),
    });
    const [mine, other] = [drawn(), drawn()];
    await world.submit('60', mine);
    await world.submit('61', other);
    const cut = proxy.loseReplyTo('findAndModify').then(() => proxy.down());
    await expect(far.rescue.forceFail('60', operator)).rejects.toThrow();
    await cut;
    proxy.up();
    const event = eventOf('RandomnessReceived', {
      request_id: contractValue.u32(61),
      raffle_id: contractValue.u32(other),
      seed: contractValue.bytes(Buffer.alloc(32, 9)),
    });
    world.chain.raffles.set(other, { status: 'FINALIZED', prizeXlm: 1, seed: Buffer.alloc(32, 9) });
    await until('the event to be taken', () =>
      deliver(far, 1, event).then(
        () => true,
        () => false,
      ),
    );
    expect(await world.job('61')).toMatchObject({ currentState: 'failed', phase: 'done' });
    // Handed back at no cost, and open to whoever works.
    expect(await world.job('60')).toMatchObject({ currentState: 'queued', attempts: 0 });
    await world.tryOnce('60');
    expect((await world.job('60')).currentState).toBe('confirmed');
  } finally {
    await connection.close(true);
    await proxy.close();
  }
});

describe('a key service that does not answer', () => {
  const real = signerFromSecret(oracleSecret);
  const hangingAt = (call: number): Signer => {
    let calls = 0;
    return {
      publicKey: real.publicKey,
      sign: (bytes) => {
        calls += 1;
        return calls === call ? new Promise<Uint8Array>(() => undefined) : real.sign(bytes);
      },
    };
  };
  const quick = {
    QUEUE_GENERATION_TIMEOUT_MS: '150',
    QUEUE_SUBMISSION_TIMEOUT_MS: '150',
    QUEUE_INITIAL_BACKOFF_MS: '20',
    QUEUE_MAX_BACKOFF_MS: '40',
  };

  it('is asked again for the PRNG secret', async () => {
    const pipeline = await open(quick, hangingAt(1));
    await world.submit('70', drawn());
    await workOff(pipeline, ['70']);
    expect(await world.job('70')).toMatchObject({
      currentState: 'confirmed',
      attempts: 2,
      errors: [{ code: 'GENERATION_TIMEOUT' }],
    });
  });

  it('holds no slot beyond the deadline of its phase', async () => {
    // The first signature makes the seed, the second signs the contract's message.
    const reader = {
      read: () =>
        Promise.resolve(
          contractValue.struct({
            status: contractValue.u32(1),
            prize_amount: contractValue.i128(10_000_0000000n),
          }),
        ),
    };
    const pipeline = await openPipeline(world.connection, {
      submitter: world.chain,
      reader,
      feeEstimator: world.chain,
      latestLedger: () => Promise.resolve(1),
      signer: hangingAt(2),
      settings: randomnessSettingsFor({
        ...quick,
        RAFFLE_CONTRACT_INTERFACE: 'provide_randomness',
        QUEUE_MAX_RETRIES: '1',
      }),
    });
    const { requestId } = await pipeline.service.submit({ requestId: '77', raffleId: null, source: 'api' });
    await workOff(pipeline, [requestId]);
    expect(await pipeline.rescue.find(requestId)).toMatchObject({
      currentState: 'dead-lettered',
      errors: [{ code: 'SUBMISSION_TIMEOUT' }],
    });
    expect(pipeline.states.canAcquireProcessingSlot()).toBe(true);
  });
});

it('a job whose submission is gone (a restored database) prepares another', async () => {
  await world.submit('80', drawn());
  world.chain.scripts.confirm.push({ kind: 'unknown', hash: 'cd'.repeat(32) as never });
  await world.tryOnce('80');
  const before = world.chain.built.length;
  world.chain.forget('80');
  await world.tryOnce('80');
  expect(await world.job('80')).toMatchObject({ currentState: 'retrying', txHash: null });
  await world.tryOnce('80');
  expect((await world.job('80')).currentState).toBe('confirmed');
  expect(world.chain.built).toHaveLength(before + 1);
});

describe('a proof that the contract refuses since a rotation', () => {
  const newSecret = Keypair.fromRawEd25519Seed(Buffer.alloc(32, 8)).secret();
  const newKey = Keypair.fromRawEd25519Seed(Buffer.alloc(32, 8)).publicKey();
  const refusal = {
    kind: 'rejected',
    code: 'CONTRACT_REJECTED',
    message: 'receive_randomness was refused with contract error 21',
    contractCode: 21,
  } as const;
  const rotated = (verdicts: (number | null)[]): Promise<RandomnessPipeline> =>
    openPipeline(world.connection, {
      submitter: world.chain,
      reader: world.chain,
      feeEstimator: world.chain,
      latestLedger: () => Promise.resolve(world.chain.ledger),
      witnesses: { refusalsOf: () => Promise.resolve(verdicts) },
      settings: randomnessSettingsFor({
        ORACLE_SECRET_KEY: newSecret,
        ORACLE_PREVIOUS_SECRET_KEY: oracleSecret,
        ORACLE_KEY_ROTATED_AT: new Date().toISOString(),
        QUEUE_INITIAL_BACKOFF_MS: '10',
      }),
    });

  it('is made anew with the current key', async () => {
    await world.submit('81', drawn(600));
    world.chain.scripts.prepare.push(refusal);
    await workOff(await rotated([21, 21]), ['81']);
    expect(await world.job('81')).toMatchObject({
      currentState: 'confirmed',
      attempts: 2,
      errors: [{ code: 'ORACLE_KEY_REFUSED' }],
      randomness: { oracleKey: newKey },
    });
    const { rows } = await world.pipeline.audit.page({ requestId: '81', limit: 10 });
    expect(rows.map(({ event }) => event)).toEqual(['revealed', 'committed', 'committed']);
  });

  it('stays while a single node says otherwise: no liar draws the seed again', async () => {
    await world.submit('82', drawn(600));
    world.chain.scripts.prepare.push(refusal);
    await workOff(await rotated([21, null]), ['82']);
    expect(await world.job('82')).toMatchObject({
      currentState: 'confirmed',
      errors: [{ code: 'ORACLE_KEY_IN_DOUBT' }],
      randomness: { oracleKey: signerFromSecret(oracleSecret).publicKey },
    });
  });

  it('stays once a transaction was signed with it, for it may have been seen', async () => {
    await world.submit('83', drawn(600));
    const pipeline = await rotated([21]);
    world.chain.scripts.confirm.push({ kind: 'expired', hash: 'ef'.repeat(32) as never }, refusal);
    await workOff(pipeline, ['83']);
    expect(await world.job('83')).toMatchObject({
      currentState: 'failed',
      seedSigned: true,
      randomness: { oracleKey: signerFromSecret(oracleSecret).publicKey },
    });
  });

  it('or for no reason of the contract’s, is an ordinary failure', async () => {
    await world.submit('84', drawn(600));
    world.chain.scripts.prepare.push({ kind: 'rejected', code: 'SIMULATION_REJECTED', message: 'budget' });
    await workOff(await rotated([null]), ['84']);
    expect(await world.job('84')).toMatchObject({
      currentState: 'failed',
      randomness: { oracleKey: signerFromSecret(oracleSecret).publicKey },
    });
  });
});

it('a request by hand gets the contract’s priority once the contract asks', async () => {
  const raffle = drawn();
  await world.submit('90', raffle);
  await deliver(
    world.pipeline,
    0,
    eventOf('RandomnessRequested', {
      request_id: contractValue.u32(90),
      raffle_id: contractValue.u32(raffle),
      prize_amount: contractValue.i128(20_000_0000000n),
    }),
  );
  expect(await world.job('90')).toMatchObject({
    priorityLevel: 1,
    urgent: true,
    prizeXlm: 20_000,
    priority: 9,
  });
  await workOff(world.pipeline, ['90']);
});

it('a job that is discarded, asked for anew and dead again is a dead letter again', async () => {
  const raffle = drawn();
  await world.submit('91', raffle);
  expect(await world.pipeline.rescue.forceFail('91', operator)).toMatchObject({ kind: 'done' });
  world.chain.raffles.get(raffle)!.status = 'CANCELLED';
  expect(await world.pipeline.rescue.discard('91', operator)).toMatchObject({ kind: 'done' });
  world.chain.drawing(raffle);
  await world.submit('91', raffle);
  expect(await world.pipeline.rescue.forceFail('91', operator)).toMatchObject({ kind: 'done' });
  const open = world.connection.collection('deadLetteredRequests');
  expect(await open.findOne({ eventId: '91' })).toMatchObject({ replayedAt: null });
  const { rows } = await world.pipeline.audit.page({ requestId: '91', limit: 20 });
  expect(rows.filter(({ event }) => event === 'abandoned')).toHaveLength(2);
});
