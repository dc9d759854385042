import { TransientError } from '../../../src/platform/errors';
import { putSample, sha256, status } from '../../support/verification-gateway';
import {
  attempt,
  claim,
  runOnce,
  verificationFixture,
  type VerificationFixture,
} from '../../support/verification-fixture';

describe('how a try at a verification ends', () => {
  let fixture: VerificationFixture;

  beforeAll(async () => {
    fixture = await verificationFixture();
  });
  afterEach(() => {
    fixture.chain.scripted = [];
  });
  afterAll(() => fixture.close());

  describe('a verdict of "not verified"', () => {
    it.each([
      ['MANIFEST_INVALID', { manifest: { contentHash: undefined } }],
      ['MANIFEST_INVALID', { manifest: { contentHash: 'abc' } }],
      ['CREATOR_MISMATCH', { creator: 'GAAZI4TCR3TY5OJHCTJC2A4QSY6CJWJH5IAJTGKIN2ER7LBNVKOCCWN7' }],
      ['CONTENT_HASH_MISMATCH', { manifest: { contentHash: sha256('something else') } }],
    ])('is a rejection and no dead letter: %s', async (code, options) => {
      const made = await fixture.submit(options);
      expect(await runOnce(fixture)).toMatchObject({ kind: 'completed', patch: { outcome: 'rejected' } });

      expect(await fixture.service.findRequest(made.requestId)).toMatchObject({
        status: 'rejected',
        rejection: { code },
        lastError: null,
      });
      const job = await fixture.jobOf(made.jobId);
      expect(job).toMatchObject({ status: 'failed', errorCode: code });
      expect(job.timeline.map(({ stage }) => stage)).toEqual(['pending', 'processing', 'failed']);
      expect(fixture.chain.certificates.has(made.manifestHash)).toBe(false);
    });

    it('covers a manifest that is no JSON, and fetches no media for it', async () => {
      const manifestCid = await fixture.gateway.put('no JSON at all', 'dag-pb-v0');
      const mediaCid = await fixture.gateway.put('media of no manifest');
      const { requester } = fixture;
      const made = await fixture.service.submitByKey({ manifestCid, mediaCid, requester }, undefined);
      await runOnce(fixture);
      expect(await fixture.service.findRequest(made.requestId)).toMatchObject({
        status: 'rejected',
        rejection: { code: 'MANIFEST_NOT_JSON' },
        contentHash: null,
      });
      expect(fixture.gateway.fetches.has(mediaCid)).toBe(false);
    });

    it('covers a manifest that is not the one the requester meant', async () => {
      const sample = await putSample(fixture.gateway, { creator: fixture.requester });
      const made = await fixture.service.submitByKey(
        { ...sample, requester: fixture.requester, canonicalManifestHash: sha256('another') },
        undefined,
      );
      await runOnce(fixture);
      expect(await fixture.service.findRequest(made.requestId)).toMatchObject({
        status: 'rejected',
        rejection: { code: 'MANIFEST_HASH_MISMATCH' },
      });
    });
  });

  it('rejects a manifest that another attestation has a certificate for, and mints nothing', async () => {
    const made = await fixture.submit();
    const signed = fixture.chain.signed.length;
    fixture.chain.mint('GSOMEBODYELSE', made.manifestHash, 'f0'.repeat(32), 'a0'.repeat(32));
    await runOnce(fixture);

    expect(await fixture.jobOf(made.jobId)).toMatchObject({
      status: 'failed',
      errorCode: 'MANIFEST_ALREADY_CERTIFIED',
    });
    expect(await fixture.requestOf(made.requestId)).toMatchObject({ phase: 'done', outcome: 'rejected' });
    expect(fixture.chain.signed).toHaveLength(signed);
  });

  it('mints one of two requests for the same manifest and rejects the other', async () => {
    const first = await fixture.submit();
    const second = await fixture.service.submitByKey({ ...first, requester: fixture.requester }, undefined);
    await runOnce(fixture);
    await runOnce(fixture);
    const jobs = await Promise.all([first.jobId, second.jobId].map((id) => fixture.jobOf(id)));
    expect(jobs.map((job) => job.status)).toEqual(['completed', 'failed']);
    expect(jobs[1]?.errorCode).toBe('MANIFEST_ALREADY_CERTIFIED');
  });

  it.each([404, 429, 500, 503])(
    'tries again after the gateway answered %i, and goes on where it was',
    async (code) => {
      const made = await fixture.submit();
      fixture.gateway.script(made.mediaCid, status(code));
      expect(await runOnce(fixture)).toMatchObject({
        kind: 'retry',
        failure: { code: 'SPV_FETCH_FAILED', retryable: true },
      });
      expect(await fixture.jobOf(made.jobId)).toMatchObject({ status: 'processing' });
      expect(await runOnce(fixture)).toMatchObject({ kind: 'completed', patch: { outcome: 'minted' } });
    },
  );

  it.each([400, 403, 451])('gives up at once after the gateway answered %i', async (code) => {
    const made = await fixture.submit();
    fixture.gateway.script(made.manifestCid, status(code));
    expect(await runOnce(fixture)).toMatchObject({
      kind: 'dead',
      failure: { code: 'SPV_FETCH_FAILED', retryable: false },
    });
    await fixture.pipeline.projector.projectPending();
    expect(await fixture.jobOf(made.jobId)).toMatchObject({
      status: 'failed',
      errorCode: 'SPV_FETCH_FAILED',
    });
  });

  it('waits for a mint of unknown outcome at no cost of an attempt, however often', async () => {
    const made = await fixture.submit();
    fixture.chain.scripted = ['unknown', new TransientError('RPC_DOWN', 'no'), 'unknown', 'unknown'];
    for (let tries = 1; tries <= 4; tries += 1) {
      expect(await runOnce(fixture)).toMatchObject({ kind: 'postponed', delayMs: 50 });
      expect(await fixture.jobOf(made.jobId)).toMatchObject({ status: 'minting' });
    }
    const signed = fixture.chain.signed.length;
    expect(await runOnce(fixture)).toMatchObject({ kind: 'completed', patch: { outcome: 'minted' } });
    expect(fixture.chain.signed).toHaveLength(signed);
    expect(await fixture.requestOf(made.requestId)).toMatchObject({ attempts: 1 });
  });

  it('counts a network that is down before anything was sent as a failed try', async () => {
    await fixture.submit();
    const prepare = jest
      .spyOn(fixture.chain, 'prepare')
      .mockRejectedValueOnce(new TransientError('RPC_DOWN', 'no'));
    expect(await runOnce(fixture)).toMatchObject({ kind: 'retry', failure: { code: 'RPC_DOWN' } });
    prepare.mockRestore();
    expect(await runOnce(fixture)).toMatchObject({ kind: 'completed' });
  });

  it('rebuilds an expired transaction within the try, and the job shows the one that landed', async () => {
    const made = await fixture.submit();
    const signed = fixture.chain.signed.length;
    fixture.chain.scripted = ['expired', 'expired'];
    await runOnce(fixture);
    expect(fixture.chain.signed).toHaveLength(signed + 3);
    const certificate = fixture.chain.certificates.get(made.manifestHash)!;
    expect(certificate.transactionHash).toBe(fixture.chain.signed.at(-1));
    expect(await fixture.jobOf(made.jobId)).toMatchObject({
      status: 'completed',
      stellarTransactionHash: certificate.transactionHash,
    });
  });

  it('asks for trust again before it rebuilds, within the try and in a later one', async () => {
    for (const inLaterTry of [false, true]) {
      const made = await fixture.submit();
      const signed = fixture.chain.signed.length;
      fixture.chain.scripted = [inLaterTry ? 'unknown' : 'expired'];
      const confirm = jest.spyOn(fixture.chain, 'confirm').mockImplementationOnce((request) => {
        fixture.chain.authorized.registry = false;
        confirm.mockRestore();
        return fixture.chain.confirm(request);
      });
      if (inLaterTry) {
        expect(await runOnce(fixture)).toMatchObject({ kind: 'postponed' });
        // As when the sweep of overdue transactions has settled it meanwhile.
        const submission = [...fixture.chain.submissions].find(([intent]) =>
          intent.endsWith(made.requestId),
        )![1];
        submission.outcome = { kind: 'expired', hash: submission.hash };
      }
      expect(await runOnce(fixture)).toMatchObject({
        kind: 'dead',
        failure: { code: 'ATTESTATION_NOT_AUTHORIZED' },
      });
      expect(fixture.chain.signed).toHaveLength(signed + 1);
      fixture.chain.authorized.registry = true;
      await fixture.pipeline.projector.projectPending();
      expect(await fixture.jobOf(made.jobId)).toMatchObject({
        status: 'failed',
        errorCode: 'ATTESTATION_NOT_AUTHORIZED',
      });
    }
  });

  it('stops rebuilding after three, as a failed try with nothing on its way', async () => {
    const made = await fixture.submit();
    fixture.chain.scripted = ['expired', 'expired', 'expired'];
    expect(await runOnce(fixture)).toMatchObject({ kind: 'retry', failure: { code: 'MINT_EXPIRED' } });
    expect(await fixture.requestOf(made.requestId)).toMatchObject({ transactionHash: null });
    expect(await runOnce(fixture)).toMatchObject({ kind: 'completed' });
  });

  it('stops in the middle of a fetch when its lease is lost, and writes nothing', async () => {
    const made = await fixture.submit();
    const lost = new AbortController();
    const before = await fixture.requestOf(made.requestId);
    fixture.gateway.script(made.mediaCid, (_request, response) => {
      response.writeHead(200).write('the beginning');
      lost.abort(new Error('lease lost'));
    });
    const claimed = await claim(fixture.queue);
    await attempt(fixture.handler, claimed, lost.signal);
    const { attempts: _, ...after } = await fixture.requestOf(made.requestId);
    expect(after).toMatchObject({ manifestHash: before.manifestHash, phase: 'leased', errors: [] });
    await fixture.queue.release(claimed.lease, { delayMs: 0, refundAttempt: true });
    expect(await runOnce(fixture)).toMatchObject({ kind: 'completed' });
  });

  it('creates one job for a request whose creator died before it came to that', async () => {
    const sample = await putSample(fixture.gateway, { creator: fixture.requester });
    const ensure = jest.spyOn(fixture.jobs, 'ensure').mockRejectedValueOnce(new Error('killed'));
    const submission = { ...sample, requester: fixture.requester };
    await expect(fixture.service.submitByKey(submission, 'crashed')).rejects.toThrow('killed');
    ensure.mockRestore();

    const again = await Promise.all(
      Array.from({ length: 20 }, () => fixture.service.submitByKey(submission, 'crashed')),
    );
    expect(new Set(again.map(({ jobId }) => jobId)).size).toBe(1);
    expect(again.every(({ alreadyThere }) => alreadyThere)).toBe(true);
    await runOnce(fixture);
    const { jobs } = await fixture.service.listJobs(fixture.requester, 100, undefined);
    expect(jobs.filter(({ requestId }) => requestId === again[0]?.requestId)).toHaveLength(1);
  });
});
