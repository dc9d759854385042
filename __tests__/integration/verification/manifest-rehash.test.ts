import { randomUUID } from 'node:crypto';
import { silentLogger } from '../../../src/platform/logger';
import type { WorkerId } from '../../../src/platform/ids';
import { canonicalHash } from '../../../src/verification/canonical-hash';
import { manifestCheckHandler } from '../../../src/verification/rehash/manifest-check.handler';
import {
  scanForManifests,
  startManifestRehashWorker,
} from '../../../src/verification/rehash/manifest-rehash-worker';
import { verifyManifestForJob } from '../../../src/verification/rehash/verify-manifest';
import { verificationHandler } from '../../../src/verification/verification.handler';
import { withEffects } from '../../support/verification-effects';
import { putSample, sha256, status } from '../../support/verification-gateway';
import {
  attempt,
  claim,
  runOnce,
  verificationFixture,
  type VerificationFixture,
} from '../../support/verification-fixture';

describe('the manifest re-hash check', () => {
  let fixture: VerificationFixture;
  const open = new AbortController().signal;

  beforeAll(async () => {
    fixture = await verificationFixture();
  });
  afterEach(() => fixture.clear());
  afterAll(() => fixture.close());

  const deps = () => ({ ...fixture, gateway: fixture.deps.content.gateway, maxManifestBytes: 10_000 });
  const check = (jobId: string) => verifyManifestForJob(deps(), jobId, open);

  async function submit(canonicalManifestHash?: string) {
    const media = `media ${randomUUID()}`;
    const { requester } = fixture;
    const manifest = { title: 'a photograph', contentHash: sha256(media), creator: requester };
    const sample = await putSample(fixture.gateway, { creator: requester, media });
    const made = await fixture.service.submitByKey(
      { ...sample, requester, canonicalManifestHash: canonicalManifestHash ?? canonicalHash(manifest) },
      undefined,
    );
    return { ...sample, ...made };
  }

  async function finish(...[handler, claimed]: Parameters<typeof attempt>): Promise<void> {
    const outcome = await attempt(handler, claimed);
    if (outcome.kind === 'completed') await fixture.queue.complete(claimed.lease, outcome.patch);
  }

  it('leaves a job alone whose manifest is the right one', async () => {
    const made = await submit();
    expect(await check(made.jobId)).toEqual({ kind: 'matches' });
    expect(await runOnce(fixture)).toMatchObject({ kind: 'completed', patch: { outcome: 'minted' } });
  });

  it('fails a waiting job whose manifest is another one, and its request ends with that', async () => {
    const made = await submit();
    fixture.gateway.forge(made.manifestCid, '{"title":"another"}');
    expect(await check(made.jobId)).toMatchObject({ kind: 'mismatched' });
    expect(await fixture.jobOf(made.jobId)).toMatchObject({
      status: 'failed',
      errorCode: 'MANIFEST_HASH_MISMATCH',
    });

    expect(await runOnce(fixture)).toMatchObject({ kind: 'completed', patch: { outcome: 'rejected' } });
    expect(await fixture.service.findRequest(made.requestId)).toMatchObject({
      status: 'rejected',
      rejection: { code: 'MANIFEST_HASH_MISMATCH' },
    });
    expect(fixture.chain.signed).toHaveLength(0);
  });

  it('does not touch what a worker holds', async () => {
    const made = await submit();
    fixture.gateway.forge(made.manifestCid, '{}');
    await claim(fixture.queue);
    expect(await check(made.jobId)).toEqual({ kind: 'held' });
    expect(await fixture.jobOf(made.jobId)).toMatchObject({ status: 'pending' });
  });

  it.each(['before', 'after'] as const)(
    'leaves the job to a worker that claims during the fetch and opens it %s the verdict',
    async (opens) => {
      const made = await submit();
      let outcome: Promise<unknown> = Promise.resolve();
      let letGo = (): void => undefined;
      const released = new Promise<void>((resolve) => (letGo = resolve));
      const handler = verificationHandler(
        withEffects(fixture.deps, {
          before: ({ name }) => (name === 'jobs.ensure' && opens === 'after' ? released : undefined),
        }),
      );
      // The check reads another manifest than the worker will, and a worker claims meanwhile.
      fixture.gateway.script(made.manifestCid, (_request, response) => {
        void (async () => {
          const claimed = await claim(fixture.queue);
          outcome = finish(handler, claimed);
          if (opens === 'before') await outcome;
          response.end('{}');
        })();
      });
      const verification = await check(made.jobId);
      letGo();
      await outcome;

      expect(verification.kind).toBe(opens === 'before' ? 'held' : 'mismatched');
      const request = await fixture.requestOf(made.requestId);
      const job = await fixture.jobOf(made.jobId);
      expect([request.outcome, job.status]).toEqual(
        opens === 'before' ? ['minted', 'completed'] : ['rejected', 'failed'],
      );
      expect(fixture.chain.signed).toHaveLength(opens === 'before' ? 1 : 0);
    },
  );

  it('has nothing to say of a job without a stored hash, beyond its content, or unknown', async () => {
    const bare = await fixture.submit();
    expect(await check(bare.jobId)).toEqual({ kind: 'not_applicable' });
    await runOnce(fixture);
    expect(await check(bare.jobId)).toEqual({ kind: 'not_applicable' });
    expect(await check('0'.repeat(24))).toEqual({ kind: 'not_applicable' });
  });

  it('is put up once for a job however many processes scan, and done by any lane', async () => {
    const made = await Promise.all([submit(), submit(), submit()]);
    fixture.gateway.forge(made[1].manifestCid, '{}');
    const options = {
      jobs: fixture.jobs,
      checks: fixture.checks,
      intervalMs: 1,
      batchSize: 2,
      logger: silentLogger(),
    };
    const scanAll = async (): Promise<void> => {
      let after: string | undefined;
      do after = await scanForManifests(options, after);
      while (after !== undefined);
    };
    await Promise.all([scanAll(), scanAll(), scanAll()]);

    const handler = manifestCheckHandler(deps());
    const results: (string | null | undefined)[] = [];
    for (;;) {
      const result = await fixture.checks.claim({ workerId: 'checker' as WorkerId, lane: 0 });
      if (result.kind === 'empty') break;
      const outcome = await handler(result.claimed, { signal: open, logger: silentLogger() });
      if (outcome.kind === 'completed') {
        results.push(outcome.patch?.result);
        await fixture.checks.complete(result.claimed.lease, outcome.patch);
      }
    }
    expect(results.sort()).toEqual(['matches', 'matches', 'mismatched']);
    expect(await fixture.pipeline.jobCounts()).toMatchObject({ pending: 2, failed: 1 });
  });

  it('ends without a verdict, and without a dead letter, when the manifest can not be had', async () => {
    const made = await submit();
    fixture.gateway.script(made.manifestCid, status(500), status(403));
    await fixture.checks.enqueue({
      key: 'one',
      payload: { verificationJobId: (await fixture.jobOf(made.jobId))._id, result: null },
    });
    const handler = manifestCheckHandler(deps());
    const result = await fixture.checks.claim({ workerId: 'checker' as WorkerId, lane: 0 });
    if (result.kind === 'empty') throw new Error('no check');
    const context = { signal: open, logger: silentLogger() };
    await expect(handler(result.claimed, context)).rejects.toMatchObject({ code: 'SPV_FETCH_FAILED' });
    expect(await handler(result.claimed, context)).toEqual({
      kind: 'completed',
      patch: { result: 'unreachable' },
    });
    expect(await fixture.jobOf(made.jobId)).toMatchObject({ status: 'pending' });
  });

  it('that keeps killing its worker ends as a dead letter, on record and nothing left behind', async () => {
    const made = await submit();
    const { _id } = await fixture.jobOf(made.jobId);
    await fixture.checks.enqueue({ key: 'deadly', payload: { verificationJobId: _id, result: null } });
    for (let attempts = 1; attempts <= 3; attempts += 1) {
      await fixture.checks.claim({ workerId: `doomed-${attempts}` as WorkerId, lane: 0 });
      await fixture.database.connection
        .collection('manifestChecks')
        .updateOne({ key: 'deadly' }, { $set: { 'lease.expiresAt': new Date(0) } });
      await fixture.checks.tidy();
    }
    expect(await fixture.checks.findByKey('deadly')).toMatchObject({
      phase: 'dead',
      deadLetterPending: true,
    });

    const [, checkWork] = fixture.pipeline.work;
    await checkWork?.projectDeadLetters(open);
    expect(await fixture.checks.findByKey('deadly')).toMatchObject({ deadLetterPending: false });
    expect(await fixture.deadLetters.find('manifest-rehash', 'deadly')).toMatchObject({
      reason: 'worker_died',
      verificationJobId: made.jobId,
      attempts: 3,
    });
    expect(await fixture.jobOf(made.jobId)).toMatchObject({ status: 'pending' });
  });

  it('scans again and again until it is stopped, through failures', async () => {
    let scans = 0;
    let enough = (): void => undefined;
    const scanned = new Promise<void>((resolve) => (enough = resolve));
    const jobs = Object.assign(Object.create(fixture.jobs) as typeof fixture.jobs, {
      waitingWithManifestHash: () => {
        scans += 1;
        if (scans === 3) enough();
        return scans === 1 ? Promise.reject(new Error('database away')) : Promise.resolve([]);
      },
    });
    const stop = startManifestRehashWorker({
      jobs,
      checks: fixture.checks,
      intervalMs: 1,
      batchSize: 5,
      logger: silentLogger(),
    });
    await scanned;
    await stop();
    const after = scans;
    await new Promise((resolve) => setImmediate(resolve));
    expect(scans).toBe(after);
  });
});
