import express from 'express';
import request from 'supertest';
import { BusyError, RejectedError, TransientError } from '../../../src/platform/errors';
import { makeWorkerId } from '../../../src/platform/ids';
import { silentLogger } from '../../../src/platform/logger';
import { onlyJob } from '../../../src/queue/claim-scope';
import { jobStates, type JobState } from '../../../src/randomness/jobs/randomness-lifecycle';
import {
  type ProcessingResult,
  RandomnessProcessorService,
} from '../../../src/randomness/processing/randomness-processor.service';
import { contractValue } from '../../../src/stellar/contract-value';
import { signerFromSecret, type Signer } from '../../../src/stellar/keys';
import type { TransactionHash } from '../../../src/stellar/submission';
import { type FakeRaffles, hangUntilAborted } from '../../support/randomness-chain';
import { openRandomness, oracleSecret, type RandomnessFixture } from '../../support/randomness-fixture';
import { until } from '../../support/worker-fixture';

const real = signerFromSecret(oracleSecret);
/** What the next signatures wait for. */
const gates: Promise<void>[] = [];
const signer: Signer = {
  publicKey: real.publicKey,
  sign: async (bytes) => {
    await gates.shift();
    return real.sign(bytes);
  },
};

let world: RandomnessFixture;
let next = 1;
const processRequest = jest.spyOn(RandomnessProcessorService.prototype, 'processRequest');
beforeAll(async () => {
  world = await openRandomness({ QUEUE_MAX_RETRIES: '2', QUEUE_MAX_CONCURRENCY: '7' }, { signer });
});
afterAll(async () => {
  processRequest.mockRestore();
  await world.close();
});

/** A raffle that waits for randomness, and its job. */
async function submitted(
  more: Parameters<RandomnessFixture['submit']>[2] = {},
): Promise<{ id: string; raffle: number }> {
  const raffle = next++;
  world.chain.drawing(raffle, more.prizeXlm ?? 600);
  await world.submit(`req-${raffle}`, raffle, more);
  return { id: `req-${raffle}`, raffle };
}

/** What the last try was told to have come to. */
async function lastResult(): Promise<object> {
  const last = processRequest.mock.results.at(-1)!.value as Promise<ProcessingResult>;
  const { outcome: _, ...told } = await last;
  return told;
}

const down = new TransientError('RPC_UNAVAILABLE', 'no endpoint answers');
const hash = 'a'.repeat(64) as TransactionHash;
type Scripts = Partial<{ [Step in keyof FakeRaffles['scripts']]: FakeRaffles['scripts'][Step][number] }>;

describe('processRequest', () => {
  it('tells of a delivery, its transaction and its ledger', async () => {
    const { id } = await submitted();
    await world.tryOnce(id);
    const { txHash, ledger } = await world.job(id);
    expect(await lastResult()).toEqual({ success: true, shouldRetry: false, txHash, ledger });
    expect(ledger).toBeGreaterThan(0);
  });

  test.each<[string, Scripts, object]>([
    ['a passing failure', { prepare: down }, { shouldRetry: true, error: 'no endpoint answers' }],
    [
      'no free source account',
      { prepare: new BusyError('NO_FREE_CHANNEL', 'every source account is taken') },
      { shouldRetry: true, error: 'every source account is taken' },
    ],
    [
      'no news of its transaction',
      { confirm: { kind: 'unknown', hash } },
      { shouldRetry: true, error: 'Confirmation timeout', txHash: hash },
    ],
    [
      'a refusal for good',
      { prepare: new RejectedError('CONTRACT_REVERT', 'the contract reverted') },
      { shouldRetry: false, error: 'the contract reverted' },
    ],
    [
      'a raffle that is over',
      {
        read: contractValue.struct({
          status: contractValue.string('CANCELLED'),
          prize_amount: contractValue.i128(1n),
        }),
      },
      { shouldRetry: false, error: 'RAFFLE_CANCELLED: Raffle already cancelled' },
    ],
  ])('tells of %s', async (_, scripts, told) => {
    const { id } = await submitted();
    for (const [step, script] of Object.entries(scripts))
      (world.chain.scripts[step as keyof Scripts] as unknown[]).push(script);
    await world.tryOnce(id);
    expect(await lastResult()).toEqual({ success: false, ...told });
  });

  it('asks for no further try once they are spent', async () => {
    const { id } = await submitted();
    world.chain.scripts.prepare.push(down, down);
    await world.tryOnce(id);
    await world.tryOnce(id);
    expect(await lastResult()).toEqual({ success: false, shouldRetry: false, error: 'no endpoint answers' });
    expect((await world.job(id)).currentState).toBe('dead-lettered');
  });

  it('asks for another try where no slot is free', async () => {
    const narrow = await world.openAnother({
      QUEUE_MAX_CONCURRENCY: '1',
      QUEUE_HIGH_PRIORITY_RESERVED: '0',
    });
    const claimed = async (): Promise<Parameters<typeof narrow.handler>[0]> => {
      const { _id } = await world.job((await submitted()).id);
      const claimant = { workerId: makeWorkerId(), lane: 0 };
      const claim = await world.pipeline.queue.claim(claimant, onlyJob(_id.toHexString()));
      if (claim.kind === 'empty') throw new Error('the job is not free');
      return claim.claimed;
    };
    const [busy, waiting] = [await claimed(), await claimed()];
    const stop = new AbortController();
    let running: Promise<unknown> = Promise.resolve();
    await new Promise<void>((hangs) => {
      world.chain.scripts.prepare.push((signal) => {
        hangs();
        return hangUntilAborted(signal);
      });
      running = narrow.handler(busy, { signal: stop.signal, logger: silentLogger() });
      running.catch(() => undefined);
    });
    await narrow.handler(waiting, { signal: stop.signal, logger: silentLogger() });
    expect(await lastResult()).toEqual({
      success: false,
      shouldRetry: true,
      error: 'no free processing slot',
    });
    stop.abort();
    await expect(running).rejects.toThrow();
  });
});

describe('a delivery', () => {
  test.each([
    ['urgent', { priority: 'high' }],
    ['urgent', { prizeXlm: 10_000 }],
    ['standard', { prizeXlm: 9_999 }],
    ['standard', {}],
  ] as const)('bids as %s for %j', async (feeClass, more) => {
    const { id } = await submitted(more);
    await world.tryOnce(id);
    expect([...world.chain.submissions.values()].at(-1)).toMatchObject({
      feeClass,
      hash: (await world.job(id)).txHash,
    });
  });

  it('of a raffle that tells no prize takes the method that everyone can check', async () => {
    const { id } = await submitted();
    world.chain.scripts.read.push(contractValue.struct({ status: contractValue.string('DRAWING') }));
    await world.tryOnce(id);
    expect((await world.job(id)).randomness).toMatchObject({ method: 'VRF' });
  });

  it('forced by an operator leaves the same rows in the audit trail as one from the queue', async () => {
    world.chain.drawing(9_000);
    await world.pipeline.rescue.forceSubmit(
      { requestId: 'forced', raffleId: 9_000 },
      { operator: 'ops', reason: 'the queue is down' },
    );
    const { requestId, randomness, txHash } = await world.job('forced');
    const { rows } = await world.pipeline.audit.page({ requestId, limit: 20 });
    const { seed, proof } = randomness!;
    expect(rows.filter(({ event }) => event === 'revealed')).toMatchObject([
      { raffleId: 9_000, data: { seed, proof, txHash } },
    ]);
    expect(rows.filter(({ event }) => event === 'committed')).toHaveLength(1);
  });
});

describe('the figures', () => {
  it('follow jobs through every state, and back to rest', async () => {
    const own = await openRandomness({ QUEUE_MAX_RETRIES: '2', QUEUE_MAX_CONCURRENCY: '7' }, { signer });
    const { chain, pipeline } = own;
    const app = express().use(pipeline.router);
    const get = async (path: string): Promise<unknown> => (await request(app).get(path)).body;
    const letGo: (() => void)[] = [];
    const gate = (): Promise<void> => new Promise((resolve) => letGo.push(resolve));
    const held = (): Promise<never> => gate().then(() => Promise.reject(down));
    const running: Promise<unknown>[] = [];
    /** Starts a try and waits for where it hangs, or else for its end. */
    const begin = async (state: JobState): Promise<void> => {
      running.push(own.tryOnce(state));
      await until(state, async () => (await own.job(state)).currentState === state);
    };
    try {
      for (const [raffle, state] of jobStates.entries()) {
        chain.drawing(raffle, 600);
        await own.submit(state, raffle);
      }
      await begin('confirmed');
      chain.scripts.prepare.push(new RejectedError('CONTRACT_REVERT', 'the contract reverted'));
      await begin('failed');
      chain.scripts.prepare.push(down, down);
      await own.tryOnce('dead-lettered');
      await begin('dead-lettered');
      chain.scripts.prepare.push(down);
      await begin('retrying');
      gates.push(gate());
      await begin('generating');
      chain.scripts.prepare.push(held);
      await begin('submitting');
      chain.scripts.confirm.push(held);
      await begin('confirming');

      const figures = { failedCount: 1, deadLetteredCount: 1 };
      const shifting = {
        ...{ queuedCount: 1, generatingCount: 1, submittingCount: 1, confirmingCount: 1, retryingCount: 1 },
        ...{ confirmedCount: 1, pendingCount: 5, totalFailedCount: 2, ...figures },
      };
      await until(
        'the figures follow',
        async () => (await pipeline.states.getMetrics()).confirmingCount === 1,
      );
      expect(await get('/queue/metrics')).toEqual(shifting);
      expect(await get('/queue/health')).toMatchObject({
        ...{ status: 'unhealthy', pendingCount: 5, activeProcessing: 3, maxConcurrency: 7, ...figures },
      });
      expect(await get('/queue/config')).toMatchObject({ activeProcessing: 3, maxConcurrency: 7 });
      for (const state of jobStates)
        expect(await get(`/queue/jobs/${state}`)).toMatchObject([
          { requestId: (await own.job(state)).requestId },
        ]);

      for (const open of letGo) open();
      await Promise.all(running);
      for (const state of ['queued', 'retrying', 'submitting', 'confirming']) await own.tryOnce(state);
      await until(
        'the figures follow',
        async () => (await pipeline.states.getMetrics()).confirmedCount === 6,
      );
      expect(await get('/queue/metrics')).toMatchObject({ pendingCount: 0, confirmedCount: 6, ...figures });
      expect(await get('/queue/health')).toMatchObject({ pendingCount: 0, activeProcessing: 0, ...figures });
    } finally {
      for (const open of letGo) open();
      await Promise.all(running);
      await own.close();
    }
  });
});
