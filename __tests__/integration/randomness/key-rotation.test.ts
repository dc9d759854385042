import { Keypair } from '@stellar/stellar-sdk';
import express from 'express';
import request from 'supertest';
import { TransientError } from '../../../src/platform/errors';
import { contractValue } from '../../../src/stellar/contract-value';
import { accountAddress, verifySignature } from '../../../src/stellar/keys';
import { contractValueBytes } from '../../../src/stellar/scval-codec';
import {
  fakeContractId,
  openPipeline,
  openRandomness,
  oracleSecret,
  randomnessSettingsFor,
  type RandomnessFixture,
} from '../../support/randomness-fixture';
import type { ContractReader } from '../../../src/stellar/submission';
import { waitFor, heartbeatRepository, testPool } from '../../support/worker-fixture';

const newSecret = Keypair.fromRawEd25519Seed(Buffer.alloc(32, 8)).secret();
const oldKey = Keypair.fromSecret(oracleSecret).publicKey();
const newKey = Keypair.fromSecret(newSecret).publicKey();

let world: RandomnessFixture;
beforeAll(async () => {
  world = await openRandomness();
});
afterAll(() => world.close());

const rotated = (rotatedAt: Date, more: Record<string, string> = {}, reader: ContractReader = world.chain) =>
  openPipeline(world.connection, {
    submitter: world.chain,
    reader,
    feeEstimator: world.chain,
    latestLedger: () => Promise.resolve(1),
    settings: randomnessSettingsFor({
      ORACLE_SECRET_KEY: newSecret,
      ORACLE_PREVIOUS_SECRET_KEY: oracleSecret,
      ORACLE_KEY_ROTATED_AT: rotatedAt.toISOString(),
      ...more,
    }),
  });

/** Works off what is ready with the keys of that pipeline. */
async function work(pipeline: Awaited<ReturnType<typeof rotated>>): Promise<void> {
  const pool = testPool({ sources: pipeline.work, heartbeats: await heartbeatRepository(world.connection) });
  const done = waitFor(pool, 'completed');
  await pool.start();
  await done;
  await pool.stop();
}

it('a job that was queued before a rotation keeps its key, and its seed, through the grace', async () => {
  world.chain.drawing(1, 600);
  await world.submit('before', 1);
  await work(await rotated(new Date()));
  expect(await world.job('before')).toMatchObject({
    currentState: 'confirmed',
    oracleKey: oldKey,
    randomness: { oracleKey: oldKey, method: 'VRF' },
  });
});

it('a job whose seed is fixed keeps it even after the grace', async () => {
  world.chain.drawing(2, 600);
  await world.submit('fixed', 2);
  world.chain.scripts.prepare.push(new TransientError('RPC_UNAVAILABLE', 'down'));
  await world.tryOnce('fixed');
  const { seed } = (await world.job('fixed')).randomness!;
  await world.connection
    .db!.collection('randomnessJobs')
    .updateOne({ requestId: 'fixed' }, { $set: { phase: 'ready' } });
  await work(await rotated(new Date(Date.now() - 2 * 86_400_000)));
  expect(await world.job('fixed')).toMatchObject({
    currentState: 'confirmed',
    randomness: { seed, oracleKey: oldKey },
  });
});

it('a job that outlives the grace without a seed is proved by the new key, not lost', async () => {
  world.chain.drawing(3, 600);
  await world.submit('late', 3);
  const pipeline = await rotated(new Date(Date.now() - 2 * 86_400_000));
  await work(pipeline);
  expect(await world.job('late')).toMatchObject({
    currentState: 'confirmed',
    oracleKey: oldKey,
    randomness: { oracleKey: newKey },
  });
  const { proof, seed } = (await world.job('late')).randomness!;
  expect(await pipeline.service.verify({ requestId: 'late', proof, seed, publicKey: newKey })).toMatchObject({
    valid: true,
  });
  expect(await pipeline.service.verify({ requestId: 'late', proof, seed, publicKey: oldKey })).toEqual({
    valid: false,
    oracleKey: false,
  });
});

it('raffles that are contracts get their proof from the key of the day as well', async () => {
  // Drawing, whatever is sent: how the delivery ends is told by its transaction.
  const reader: ContractReader = {
    read: () =>
      Promise.resolve(
        contractValue.struct({ status: contractValue.u32(1), prize_amount: contractValue.i128(1n) }),
      ),
  };
  const provide = { RAFFLE_CONTRACT_INTERFACE: 'provide_randomness' };
  const before = await openPipeline(world.connection, {
    submitter: world.chain,
    reader,
    feeEstimator: world.chain,
    latestLedger: () => Promise.resolve(1),
    settings: randomnessSettingsFor(provide),
  });
  for (const [requestId, rotatedAt, signingKey] of [
    ['70', new Date(), oldKey],
    ['71', new Date(Date.now() - 2 * 86_400_000), newKey],
  ] as const) {
    await before.service.submit({ requestId, raffleId: null, source: 'event' });
    world.chain.scripts.confirm.push(() => {
      const { hash } = [...world.chain.submissions.values()].at(-1)!;
      return Promise.resolve({
        ...{ kind: 'success', hash, ledger: 5, returnValue: { type: 'void' }, feeChargedStroops: 1n },
      } as const);
    });
    await work(await rotated(rotatedAt, provide, reader));
    const [seed, publicKey, proof] = [...world.chain.submissions.values()].at(-1)!.call.args;
    const signed = contractValue.vec([
      contractValue.address(fakeContractId),
      contractValue.u64(BigInt(requestId)),
      seed!,
    ]);
    if (publicKey?.type !== 'bytes' || proof?.type !== 'bytes') throw new Error('no key, no proof');
    expect(accountAddress(publicKey.value)).toBe(signingKey);
    expect(verifySignature(signingKey, contractValueBytes(signed), proof.value)).toBe(true);
  }
});

test.each([
  ['through the grace', new Date(), [newKey, oldKey]],
  ['after it', new Date(Date.now() - 2 * 86_400_000), [newKey]],
])('the keys that prove are told %s', async (_, rotatedAt, active) => {
  const { router } = await rotated(rotatedAt);
  const { body } = (await request(express().use(router)).get('/api/v1/randomness/public-key')) as {
    body: object;
  };
  expect(body).toMatchObject({ success: true, data: { address: newKey, active } });
});
