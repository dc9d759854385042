import { verificationHandler } from '../../../src/verification/verification.handler';
import { withEffects } from '../../support/verification-effects';
import {
  attempt,
  claim,
  runOnce,
  verificationFixture,
  type VerificationFixture,
} from '../../support/verification-fixture';

describe('a request that is given up', () => {
  let fixture: VerificationFixture;

  beforeAll(async () => {
    fixture = await verificationFixture({ maxAttempts: 2 });
  });
  afterEach(async () => {
    fixture.chain.scripted = [];
    await fixture.clear();
  });
  afterAll(() => fixture.close());

  /** Two workers die at that call; the sweep that finds the second one gives the request up. */
  async function dieTwiceAfter(call: string) {
    const made = await fixture.submit();
    for (const worker of ['first', 'second']) {
      const handler = verificationHandler(
        withEffects(fixture.deps, {
          after: ({ name }) => {
            if (name === call) throw new Error('killed');
          },
        }),
      );
      await attempt(handler, await claim(fixture.queue, worker));
      await fixture.expireLease(made.requestId);
    }
    await fixture.queue.tidy();
    expect(await fixture.requestOf(made.requestId)).toMatchObject({ phase: 'dead', deadLetterPending: true });
    return made;
  }

  const project = () => fixture.pipeline.projector.projectPending();
  const recordOf = async (requestId: string) =>
    fixture.deadLetters.find('verification', (await fixture.requestOf(requestId)).key);

  it('fails its job once, however often the projection is repeated', async () => {
    const made = await dieTwiceAfter('signer.sign');
    await project();
    const job = await fixture.jobOf(made.jobId);
    expect(job).toMatchObject({ status: 'failed', errorCode: 'WORKER_DIED' });
    expect(await recordOf(made.requestId)).toMatchObject({ reason: 'worker_died', attempts: 2 });
    await fixture.pipeline.projector.project(await fixture.requestOf(made.requestId));
    expect(await fixture.jobOf(made.jobId)).toEqual(job);
  });

  it('has the job of a request whose creator died before it made one', async () => {
    const made = await dieTwiceAfter('jobs.ensure');
    await fixture.database.connection.collection('verificationJobs').deleteMany({});
    await project();
    expect(await fixture.jobOf(made.jobId)).toMatchObject({ status: 'failed' });
  });

  it('completes the job when its mint turns out to have landed', async () => {
    const made = await dieTwiceAfter('submitter.confirm');
    await project();
    const certificate = fixture.chain.certificates.get(made.manifestHash)!;
    expect(await fixture.jobOf(made.jobId)).toMatchObject({
      status: 'completed',
      certificateId: certificate.id.toString(),
      stellarTransactionHash: certificate.transactionHash,
    });
    expect(await recordOf(made.requestId)).toMatchObject({ reason: 'worker_died' });
  });

  it('says nothing of its job, and has no record, while nobody can tell whether the mint landed', async () => {
    const made = await dieTwiceAfter('submitter.send');
    fixture.chain.scripted = ['unknown'];
    expect(await project()).toBe(0);
    expect(await fixture.jobOf(made.jobId)).toMatchObject({ status: 'minting' });
    expect(await recordOf(made.requestId)).toBeNull();

    fixture.chain.scripted = ['expired'];
    expect(await project()).toBe(1);
    expect(await fixture.jobOf(made.jobId)).toMatchObject({ status: 'failed', errorCode: 'WORKER_DIED' });
    expect(await recordOf(made.requestId)).not.toBeNull();
  });

  it('is minted once after all when it is replayed, under a new job', async () => {
    const made = await dieTwiceAfter('submitter.send');
    fixture.chain.scripted = ['expired'];
    await project();
    await fixture.pipeline.projector.replay(made.requestId);
    expect(await runOnce(fixture)).toMatchObject({ kind: 'completed', patch: { outcome: 'minted' } });

    const { verificationJobId } = await fixture.requestOf(made.requestId);
    expect(await fixture.jobOf(verificationJobId.toHexString())).toMatchObject({
      status: 'completed',
      generation: 1,
    });
    expect(await fixture.jobOf(made.jobId)).toMatchObject({ status: 'failed', generation: 0 });
    expect(fixture.chain.certificates.size).toBe(1);
  });

  it('completes also the job of a replay that died before it had come anywhere', async () => {
    const made = await dieTwiceAfter('submitter.send');
    fixture.chain.scripted = ['expired'];
    await project();
    await fixture.pipeline.projector.replay(made.requestId);
    const { manifestHash, attestation, transactionHash } = await fixture.requestOf(made.requestId);
    for (const worker of ['third', 'fourth']) {
      const handler = verificationHandler(
        withEffects(fixture.deps, {
          after: ({ name }) => {
            if (name === 'jobs.ensure') throw new Error('killed');
          },
        }),
      );
      await attempt(handler, await claim(fixture.queue, worker));
      await fixture.expireLease(made.requestId);
    }
    await fixture.queue.tidy();
    fixture.chain.mint(fixture.requester, manifestHash!, attestation!.attestationHash, transactionHash!);
    fixture.chain.submissions.forEach((submission) => (submission.outcome = null));
    await project();
    const { verificationJobId } = await fixture.requestOf(made.requestId);
    expect(await fixture.jobOf(verificationJobId.toHexString())).toMatchObject({
      status: 'completed',
      generation: 1,
      teeAttestationHash: attestation!.attestationHash,
    });
  });
});
