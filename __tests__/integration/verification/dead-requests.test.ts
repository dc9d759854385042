import type { TransactionHash } from '../../../src/stellar/submission';
import { verificationHandler } from '../../../src/verification/verification.handler';
import { withEffects } from '../../support/verification-effects';
import type { SampleOptions } from '../../support/verification-gateway';
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
  async function dieTwiceAfter(call: string, sample: Partial<SampleOptions> = {}) {
    const made = await fixture.submit(sample);
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
  /** The request has that end too, and no dead letter says otherwise, however often the projection is repeated. */
  const toldAlike = async (requestId: string, view: object) => {
    expect(await fixture.service.findRequest(requestId)).toMatchObject(view);
    expect(await project()).toBe(0);
    expect(await fixture.requestOf(requestId)).toMatchObject({ phase: 'done', deadLetterPending: false });
    expect(await recordOf(requestId)).toBeNull();
  };
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

  it('is completed along with its job, and is no dead letter, when its mint turns out to have landed', async () => {
    const made = await dieTwiceAfter('submitter.confirm');
    await project();
    const certificate = fixture.chain.certificates.get(made.manifestHash)!;
    expect(await fixture.jobOf(made.jobId)).toMatchObject({
      status: 'completed',
      certificateId: certificate.id.toString(),
      stellarTransactionHash: certificate.transactionHash,
    });
    await toldAlike(made.requestId, {
      status: 'completed',
      certificateId: certificate.id.toString(),
      transactionHash: certificate.transactionHash,
    });
  });

  it("is completed when the event of its mint came before its worker's death was noticed", async () => {
    const made = await dieTwiceAfter('submitter.send');
    const request = await fixture.requestOf(made.requestId);
    const { transactionHash } = request;
    await fixture.jobs.move({
      seen: await fixture.jobOf(made.jobId),
      to: 'completed',
      epoch: request.epoch,
      actor: 'oracle',
      fields: { certificateId: '77' },
    });
    await project();
    await toldAlike(made.requestId, { status: 'completed', certificateId: '77', transactionHash });
  });

  it('is rejected, and is no dead letter, when its workers died after the answer "no" was stored', async () => {
    const made = await dieTwiceAfter('queue.record', {
      creator: 'GAAZI4TCR3TY5OJHCTJC2A4QSY6CJWJH5IAJTGKIN2ER7LBNVKOCCWN7',
    });
    await project();
    expect(await fixture.jobOf(made.jobId)).toMatchObject({
      status: 'failed',
      errorCode: 'CREATOR_MISMATCH',
    });
    await toldAlike(made.requestId, { status: 'rejected', rejection: { code: 'CREATOR_MISMATCH' } });
  });

  it('is looked after beside others of which nobody can tell, not behind them', async () => {
    const made = [];
    for (let count = 0; count < 6; count += 1) made.push(await dieTwiceAfter('submitter.send'));
    let looking = 0;
    let letGo = (): void => undefined;
    const all = new Promise<void>((resolve) => (letGo = resolve));
    const confirm = jest.spyOn(fixture.chain, 'confirm').mockImplementation(async () => {
      if ((looking += 1) === made.length) letGo();
      await all;
      return { kind: 'unknown', hash: 'aa'.repeat(32) as TransactionHash };
    });
    expect(await project()).toBe(0);
    confirm.mockRestore();
    expect(looking).toBe(made.length);
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

  it('is believed to have come to nothing once no node can remember its mint and the contract has no certificate', async () => {
    const [lost, landed] = [await dieTwiceAfter('submitter.send'), await dieTwiceAfter('submitter.send')];
    const { manifestHash, attestation, transactionHash } = await fixture.requestOf(landed.requestId);
    fixture.chain.mint(fixture.requester, manifestHash!, attestation!.attestationHash, transactionHash!);
    const confirm = jest
      .spyOn(fixture.chain, 'confirm')
      .mockImplementation(() => Promise.resolve({ kind: 'unknown', hash: transactionHash! }));
    expect(await project()).toBe(0);

    await fixture.database.connection
      .collection('verificationRequestEvents')
      .updateMany({ phase: 'dead' }, [
        { $set: { finishedAt: { $subtract: ['$finishedAt', 25 * 3_600_000] } } },
      ]);
    expect(await project()).toBe(2);
    confirm.mockRestore();
    expect(await fixture.jobOf(lost.jobId)).toMatchObject({ status: 'failed', errorCode: 'WORKER_DIED' });
    expect(await recordOf(lost.requestId)).not.toBeNull();
    expect(await fixture.jobOf(landed.jobId)).toMatchObject({ status: 'completed' });
    await toldAlike(landed.requestId, { status: 'completed', transactionHash });
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
