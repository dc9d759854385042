import { once } from 'node:events';
import type { WorkerPool } from '../../../src/worker/worker-pool';
import { verificationFixture, type VerificationFixture } from '../../support/verification-fixture';

describe('verification under a worker pool', () => {
  let fixture: VerificationFixture;
  const pools: WorkerPool[] = [];

  beforeAll(async () => {
    fixture = await verificationFixture();
  });
  afterEach(async () => {
    await Promise.all(pools.splice(0).map((pool) => pool.stop()));
  });
  afterAll(() => fixture.close());

  const startPool = async (lanes: number): Promise<WorkerPool> => {
    const pool = fixture.pool(lanes);
    pools.push(pool);
    await pool.start();
    return pool;
  };

  /** Resolves when the pools have ended so many requests between them. */
  const ended = (from: WorkerPool[], count: number): Promise<void> =>
    new Promise((resolve) => {
      let seen = 0;
      const note = ({ pipeline }: { pipeline: string }): void => {
        if (pipeline === 'verification' && (seen += 1) === count) resolve();
      };
      for (const { events } of from) events.on('completed', note).on('dead_lettered', note);
    });

  it('mints each of 12 requests once with 2 workers of 3 lanes', async () => {
    const made = await Promise.all(Array.from({ length: 12 }, () => fixture.submit()));
    const workers = await Promise.all([startPool(3), startPool(3)]);
    await ended(workers, 12);

    expect(fixture.chain.signed).toHaveLength(12);
    for (const { jobId, requestId, manifestHash } of made) {
      const certificate = fixture.chain.certificates.get(manifestHash)!;
      expect(await fixture.jobOf(jobId)).toMatchObject({
        status: 'completed',
        certificateId: certificate.id.toString(),
      });
      expect(await fixture.requestOf(requestId)).toMatchObject({ attempts: 1, outcome: 'minted' });
    }
    expect(await fixture.pipeline.jobCounts()).toMatchObject({
      completed: 12,
      pending: 0,
      minting: 0,
      failed: 0,
    });
  });

  it('dead-letters what can never succeed, with the job failed for the same reason', async () => {
    const made = await fixture.submit();
    fixture.chain.authorized.oracle = false;
    const pool = await startPool(1);
    const [{ jobId, failure }] = (await once(pool.events, 'dead_lettered')) as [
      { jobId: string; failure: { code: string } },
    ];
    fixture.chain.authorized.oracle = true;

    expect([jobId, failure.code]).toEqual([made.requestId, 'ATTESTATION_NOT_AUTHORIZED']);
    const request = await fixture.requestOf(made.requestId);
    expect(await fixture.deadLetters.find('verification', request.key)).toMatchObject({
      eventId: request.eventId,
      verificationJobId: made.jobId,
      mediaCid: made.mediaCid,
      manifestCid: made.manifestCid,
      requester: fixture.requester,
      reason: 'non_retryable',
      errorCode: 'ATTESTATION_NOT_AUTHORIZED',
      retryable: false,
      attempts: 1,
    });
    expect(await fixture.jobOf(made.jobId)).toMatchObject({
      status: 'failed',
      errorCode: 'ATTESTATION_NOT_AUTHORIZED',
      errorMessage: expect.stringContaining('provider') as string,
    });
  });

  it('works for a new job after a replay, for the failed one stays failed', async () => {
    const made = await fixture.submit();
    fixture.chain.authorized.registry = false;
    const pool = await startPool(1);
    await once(pool.events, 'dead_lettered');
    fixture.chain.authorized.registry = true;
    const fetched = fixture.gateway.fetches.get(made.mediaCid);

    expect(await fixture.pipeline.projector.replay(made.requestId)).toMatchObject({ kind: 'replayed' });
    pool.wake();
    await once(pool.events, 'completed');

    const request = await fixture.requestOf(made.requestId);
    expect(request.verificationJobId.toHexString()).not.toBe(made.jobId);
    expect(await fixture.jobOf(made.jobId)).toMatchObject({ status: 'failed' });
    expect(await fixture.jobOf(request.verificationJobId.toHexString())).toMatchObject({
      status: 'completed',
      requestId: made.requestId,
      generation: 1,
    });
    expect(fixture.gateway.fetches.get(made.mediaCid)).toBe(fetched);
  });
});
