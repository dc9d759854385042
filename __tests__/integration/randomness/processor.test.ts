import { BusyError, RejectedError, TransientError } from '../../../src/platform/errors';
import { hangUntilAborted } from '../../support/randomness-chain';
import { openRandomness, type RandomnessFixture } from '../../support/randomness-fixture';
import { captureLogger } from '../../support/capture-logger';
import type { TransactionHash } from '../../../src/stellar/submission';

const hash = (fill: string): TransactionHash => fill.repeat(64) as TransactionHash;
const log = captureLogger();
let world: RandomnessFixture;
let next = 1;

/** A raffle that waits for randomness, and its job. */
async function request(
  more: Parameters<RandomnessFixture['submit']>[2] = {},
): Promise<{ id: string; raffle: number }> {
  const raffle = next++;
  const id = `req-${raffle}`;
  world.chain.drawing(raffle, more.prizeXlm ?? 10);
  await world.submit(id, raffle, more);
  return { id, raffle };
}

beforeAll(async () => {
  world = await openRandomness(
    {
      QUEUE_GENERATION_TIMEOUT_MS: '150',
      QUEUE_SUBMISSION_TIMEOUT_MS: '150',
      QUEUE_CONFIRMATION_TIMEOUT_MS: '75',
    },
    { logger: log.logger },
  );
});
afterAll(() => world.close());
beforeEach(() => {
  world.chain.calls.length = 0;
});

describe('one try', () => {
  it('generates, submits and confirms', async () => {
    const { id, raffle } = await request();
    expect(await world.tryOnce(id)).toMatchObject({ kind: 'ran', ending: 'completed' });
    const job = await world.job(id);
    expect(job).toMatchObject({ currentState: 'confirmed', phase: 'done', attemptCount: 1, lease: null });
    expect(job.txHash).toMatch(/^[0-9a-f]{64}$/);
    expect(await world.path(id)).toEqual(['generating', 'submitting', 'confirming', 'confirmed']);
    expect(world.chain.raffles.get(raffle)?.seed?.toString('hex')).toBe(job.randomness?.seed);
    const { rows } = await world.pipeline.audit.page({ requestId: id, limit: 10 });
    expect(rows.map(({ event }) => event)).toEqual(['revealed', 'committed']);
    expect(JSON.stringify(rows[1])).not.toContain(job.randomness?.seed);
    expect(log.text()).toContain(
      `Job ${id} transitioned: generating → submitting (Randomness computed) [attempt 1/5]`,
    );
  });

  it('takes a VRF from the threshold on and a PRNG below, by what the raffle itself says', async () => {
    const small = await request({ prizeXlm: 499 });
    const large = await request({ prizeXlm: 500 });
    // The requester's word for the prize is no way to a weaker method.
    world.chain.raffles.get(large.raffle)!.prizeXlm = 501;
    for (const { id } of [small, large]) await world.tryOnce(id);
    expect((await world.job(small.id)).randomness?.method).toBe('PRNG');
    expect((await world.job(large.id)).randomness?.method).toBe('VRF');
  });

  it('retries a transient generation failure after a back-off', async () => {
    const { id } = await request();
    world.chain.scripts.read.push(new TransientError('RPC_UNAVAILABLE', 'no endpoint answers'));
    expect(await world.tryOnce(id)).toMatchObject({ ending: 'released' });
    expect(await world.job(id)).toMatchObject({
      currentState: 'retrying',
      phase: 'waiting',
      lastError: 'no endpoint answers',
      attemptCount: 1,
    });
    expect(await world.path(id)).toEqual(['generating', 'retrying']);
    expect(await world.tryOnce(id)).toMatchObject({ ending: 'completed' });
    expect(await world.path(id)).toEqual([
      'generating',
      'retrying',
      'generating',
      'submitting',
      'confirming',
      'confirmed',
    ]);
    expect((await world.job(id)).attemptCount).toBe(2);
  });

  it('retries a failed submission without generating again', async () => {
    const { id } = await request();
    world.chain.scripts.prepare.push(new TransientError('INSUFFICIENT_FEE', 'Insufficient fee'));
    await world.tryOnce(id);
    const seed = (await world.job(id)).randomness?.seed;
    expect(await world.path(id)).toEqual(['generating', 'submitting', 'retrying']);
    await world.tryOnce(id);
    expect(await world.job(id)).toMatchObject({ currentState: 'confirmed', randomness: { seed } });
    const { rows } = await world.pipeline.audit.page({ requestId: id, limit: 10 });
    expect(rows.filter(({ event }) => event === 'committed')).toHaveLength(1);
  });

  it('retries a confirmation timeout by confirming the same transaction, never by a second one', async () => {
    const { id } = await request();
    const before = world.chain.built.length;
    world.chain.scripts.confirm.push({ kind: 'unknown', hash: hash('a') });
    await world.tryOnce(id);
    expect(await world.job(id)).toMatchObject({
      currentState: 'retrying',
      lastError: 'Confirmation timeout',
    });
    world.chain.calls.length = 0;
    await world.tryOnce(id);
    expect((await world.job(id)).currentState).toBe('confirmed');
    expect(world.chain.calls).toEqual(['confirm']);
    expect(world.chain.built.length - before).toBe(1);
  });

  it('builds a new transaction once the old one has provably expired', async () => {
    const { id } = await request();
    const before = world.chain.built.length;
    world.chain.scripts.confirm.push((signal) => {
      signal.throwIfAborted();
      const submission = world.chain.submissionOf(id);
      submission.outcome = { kind: 'expired', hash: submission.hash };
      return Promise.resolve(submission.outcome);
    });
    await world.tryOnce(id);
    expect(await world.job(id)).toMatchObject({ currentState: 'retrying', txHash: null });
    await world.tryOnce(id);
    expect((await world.job(id)).currentState).toBe('confirmed');
    expect(world.chain.built.length - before).toBe(2);
  });

  it('fails at once on a permanent failure, and keeps the job for rescue', async () => {
    const { id } = await request();
    world.chain.scripts.prepare.push(new RejectedError('CONTRACT_REVERT', 'the contract reverted'));
    expect(await world.tryOnce(id)).toMatchObject({ ending: 'dead_lettered' });
    await world.pipeline.projector.projectPending();
    expect(await world.job(id)).toMatchObject({ currentState: 'failed', phase: 'dead', attemptCount: 1 });
    const { rows } = await world.pipeline.audit.page({ requestId: id, limit: 1 });
    expect(rows[0]).toMatchObject({ event: 'abandoned', data: { code: 'CONTRACT_REVERT' } });
  });

  it('dead-letters when the attempts are spent, through retrying', async () => {
    const { id } = await request();
    for (let attempt = 1; attempt <= 5; attempt++) {
      world.chain.scripts.prepare.push(new TransientError('RPC_UNAVAILABLE', `down, ${attempt}`));
      await world.tryOnce(id);
    }
    expect(await world.job(id)).toMatchObject({
      currentState: 'dead-lettered',
      phase: 'dead',
      attemptCount: 5,
      lastError: 'down, 5',
    });
    expect((await world.path(id)).slice(-2)).toEqual(['retrying', 'dead-lettered']);
    expect(log.text()).toContain(
      `[DEAD-LETTER] Job ${id} exhausted all 5 attempts. Manual intervention required.`,
    );
    expect(await world.tryOnce(id)).toEqual({ kind: 'not_available' });
  });

  it('never ends a job while its transaction may still land, not even on the last attempt', async () => {
    const { id } = await request();
    const before = world.chain.built.length;
    for (let attempt = 1; attempt <= 7; attempt++) {
      world.chain.scripts.confirm.push(
        attempt % 2 === 0
          ? new TransientError('RPC_UNAVAILABLE', 'no endpoint answers')
          : { kind: 'unknown', hash: hash('b') },
      );
      await world.tryOnce(id);
    }
    // Two tries beyond the last: both were given back.
    expect(await world.job(id)).toMatchObject({ currentState: 'retrying', phase: 'waiting', attempts: 4 });
    expect((await world.path(id)).slice(-1)).toEqual(['retrying']);
    await world.tryOnce(id);
    expect(await world.job(id)).toMatchObject({ currentState: 'confirmed', phase: 'done' });
    expect(world.chain.built.length - before).toBe(1);
  });

  it('waits for a free source account without losing an attempt, and isn’t counted as in processing', async () => {
    const { id } = await request();
    for (let look = 1; look <= 6; look++) {
      world.chain.scripts.prepare.push(new BusyError('NO_FREE_CHANNEL', 'every source account is taken'));
      await world.tryOnce(id);
      expect(await world.job(id)).toMatchObject({ currentState: 'retrying', phase: 'waiting', attempts: 0 });
    }
    await world.tryOnce(id);
    expect(await world.job(id)).toMatchObject({ currentState: 'confirmed', attempts: 1 });
  });

  test.each([
    ['read', 'GENERATION_TIMEOUT', ['generating', 'retrying']],
    ['prepare', 'SUBMISSION_TIMEOUT', ['generating', 'submitting', 'retrying']],
    ['send', 'SUBMISSION_TIMEOUT', ['generating', 'submitting', 'retrying']],
    ['confirm', 'CONFIRMATION_TIMEOUT', ['generating', 'submitting', 'confirming', 'retrying']],
  ] as const)('stops a %s that hangs and retries', async (step, code, path) => {
    const { id } = await request();
    const before = world.chain.built.length;
    let stopped = false;
    world.chain.scripts[step].push((signal: AbortSignal) =>
      hangUntilAborted(signal).finally(() => {
        stopped = true;
      }),
    );
    await world.tryOnce(id);
    expect(stopped).toBe(true);
    expect(await world.path(id)).toEqual(path);
    expect((await world.job(id)).errors.at(-1)).toMatchObject({ code, retryable: true });
    await world.tryOnce(id);
    expect((await world.job(id)).currentState).toBe('confirmed');
    expect(world.chain.built.length - before).toBe(1);
  });
});

describe('a raffle that is over', () => {
  it('ends a queued job as failed without a transaction, and without a dead letter', async () => {
    const { id, raffle } = await request();
    world.chain.raffles.set(raffle, { status: 'FINALIZED', prizeXlm: 1, seed: Buffer.alloc(32, 9) });
    expect(await world.tryOnce(id)).toMatchObject({ ending: 'completed' });
    expect(await world.path(id)).toEqual(['failed']);
    expect(await world.job(id)).toMatchObject({
      phase: 'done',
      lastError: 'RAFFLE_FINALIZED: Raffle already finalized',
    });
    expect(world.chain.calls).toEqual(['get_raffle_data']);
  });

  it('ends a retrying job through generating', async () => {
    const { id, raffle } = await request();
    world.chain.scripts.prepare.push(new TransientError('RPC_UNAVAILABLE', 'down'));
    await world.tryOnce(id);
    world.chain.raffles.get(raffle)!.status = 'CANCELLED';
    await world.tryOnce(id);
    expect(await world.path(id)).toEqual(['generating', 'submitting', 'retrying', 'generating', 'failed']);
  });

  it('confirms a job whose own seed is there, by the legal way', async () => {
    const { id } = await request();
    world.chain.scripts.prepare.push(async () => {
      // Delivered, and the answer lost: the next try finds the raffle finalized.
      const job = await world.job(id);
      world.chain.raffles.set(job.raffleId!, {
        status: 'FINALIZED',
        prizeXlm: 10,
        seed: Buffer.from(job.randomness!.seed, 'hex'),
      });
      throw new TransientError('RPC_UNAVAILABLE', 'the answer got lost');
    });
    await world.tryOnce(id);
    world.chain.calls.length = 0;
    await world.tryOnce(id);
    expect((await world.path(id)).slice(-4)).toEqual(['generating', 'submitting', 'confirming', 'confirmed']);
    expect(world.chain.calls).toEqual(['get_raffle_data']);
  });

  it('takes a refusal as "already delivered" only when the raffle says so', async () => {
    const lost = await request();
    world.chain.scripts.confirm.push(() => {
      world.chain.raffles.set(lost.raffle, { status: 'FINALIZED', prizeXlm: 10, seed: Buffer.alloc(32, 1) });
      return Promise.resolve({
        kind: 'rejected',
        code: 'CONTRACT_REJECTED',
        message: 'over',
        contractCode: 61,
      });
    });
    await world.tryOnce(lost.id);
    expect(await world.job(lost.id)).toMatchObject({ currentState: 'failed', phase: 'done' });

    const refused = await request();
    world.chain.scripts.confirm.push({
      kind: 'rejected',
      code: 'CONTRACT_REJECTED',
      message: 'no',
      contractCode: 23,
    });
    await world.tryOnce(refused.id);
    // The raffle may have been read from a node behind the one that refused.
    expect(await world.job(refused.id)).toMatchObject({ currentState: 'retrying', txHash: null });
    await world.tryOnce(refused.id);
    expect((await world.job(refused.id)).currentState).toBe('confirmed');
  });

  it('says by name what a contract refused, and where to look for it', async () => {
    const { id } = await request();
    world.chain.scripts.prepare.push({
      kind: 'rejected',
      code: 'CONTRACT_REJECTED',
      message: 'receive_randomness was refused with contract error 21',
      contractCode: 21,
    });
    await world.tryOnce(id);
    expect(await world.job(id)).toMatchObject({
      currentState: 'failed',
      phase: 'dead',
      lastError:
        'receive_randomness was refused with contract error 21 (InvalidParameters): it did not take this key or ' +
        'proof: see STELLAR_ORACLE_SECRET_KEY and ORACLE_SECRET_KEY',
    });
  });

  it('waits and tries again when it is too early', async () => {
    const { id } = await request();
    world.chain.scripts.prepare.push({
      kind: 'rejected',
      code: 'CONTRACT_REJECTED',
      message: 'early',
      contractCode: 64,
    });
    await world.tryOnce(id);
    expect(await world.job(id)).toMatchObject({ currentState: 'retrying', attempts: 0, errors: [] });
  });

  it('waits, and makes and simulates nothing, while tickets are still for sale', async () => {
    const { id, raffle } = await request();
    world.chain.raffles.get(raffle)!.status = 'OPEN';
    await world.tryOnce(id);
    expect(await world.job(id)).toMatchObject({ currentState: 'queued', attempts: 0, randomness: null });
    expect(world.chain.calls).toEqual(['get_raffle_data']);
    world.chain.raffles.get(raffle)!.status = 'DRAWING';
    await world.tryOnce(id);
    expect((await world.job(id)).currentState).toBe('confirmed');
  });

  it('sends nothing once the raffle may fall back', async () => {
    const raffle = next++;
    world.chain.drawing(raffle);
    await world.pipeline.service.submit({
      requestId: 'late',
      raffleId: raffle,
      source: 'event',
      requestedAtLedger: world.chain.ledger - 200,
    });
    await world.tryOnce('late');
    expect(await world.job('late')).toMatchObject({
      currentState: 'failed',
      phase: 'dead',
      errors: [{ code: 'REQUEST_TOO_LATE' }],
    });
    expect(world.chain.calls).not.toContain('prepare');
  });
});

describe('the SLA', () => {
  it('runs from the close of the request’s ledger, over retries', async () => {
    const raffle = next++;
    world.chain.drawing(raffle);
    await world.pipeline.service.submit({
      requestId: 'slow',
      raffleId: raffle,
      source: 'event',
      priority: 'high',
      requestedAt: new Date(Date.now() - 6000),
    });
    await world.tryOnce('slow');
    expect(await world.job('slow')).toMatchObject({ slaBreached: true, priorityLevel: 1, urgent: true });
    expect(log.text()).toContain('Job slow breached the SLA');
  });
});
