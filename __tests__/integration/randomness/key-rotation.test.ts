import { Keypair } from '@stellar/stellar-sdk';
import { TransientError } from '../../../src/platform/errors';
import {
  openPipeline,
  openRandomness,
  oracleSecret,
  randomnessSettingsFor,
  type RandomnessFixture,
} from '../../support/randomness-fixture';
import { waitFor, heartbeatRepository, testPool } from '../../support/worker-fixture';

const newSecret = Keypair.fromRawEd25519Seed(Buffer.alloc(32, 8)).secret();
const oldKey = Keypair.fromSecret(oracleSecret).publicKey();
const newKey = Keypair.fromSecret(newSecret).publicKey();

let world: RandomnessFixture;
beforeAll(async () => {
  world = await openRandomness();
});
afterAll(() => world.close());

const rotated = (rotatedAt: Date) =>
  openPipeline(world.connection, {
    submitter: world.chain,
    reader: world.chain,
    feeEstimator: world.chain,
    latestLedger: () => Promise.resolve(1),
    settings: randomnessSettingsFor({
      ORACLE_SECRET_KEY: newSecret,
      ORACLE_PREVIOUS_SECRET_KEY: oracleSecret,
      ORACLE_KEY_ROTATED_AT: rotatedAt.toISOString(),
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
  });
});
