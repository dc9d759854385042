import { silentLogger } from '../../../src/platform/logger';
import type { VerificationRequest } from '../../../src/verification/verification-request.model';
import { verificationHandler } from '../../../src/verification/verification.handler';
import type { JobOutcome } from '../../../src/worker/job-handler';
import { type Effect, withEffects } from '../../support/verification-effects';
import {
  attempt,
  claim,
  runOnce,
  verificationFixture,
  type VerificationFixture,
} from '../../support/verification-fixture';

class Killed extends Error {}

type Made = Awaited<ReturnType<VerificationFixture['submit']>>;

describe('a worker that dies or loses its lease at any point of the pipeline', () => {
  let fixture: VerificationFixture;
  /** Every call out of one undisturbed run, in order. */
  let effects: Effect[];

  beforeAll(async () => {
    fixture = await verificationFixture();
    effects = [];
    await fixture.submit();
    const handler = verificationHandler(
      withEffects(fixture.deps, { before: (effect) => void effects.push(effect) }),
    );
    await runOnce({ queue: fixture.queue, handler });
  });
  afterAll(() => fixture.close());

  async function expectMintedOnce(made: Made): Promise<void> {
    const certificate = fixture.chain.certificates.get(made.manifestHash)!;
    const submission = [...fixture.chain.submissions].find(([intent]) => intent.endsWith(made.requestId))![1];
    expect(certificate.transactionHash).toBe(submission.hash);
    expect(await fixture.jobOf(made.jobId)).toMatchObject({
      status: 'completed',
      certificateId: certificate.id.toString(),
      stellarTransactionHash: certificate.transactionHash,
    });
    expect(await fixture.requestOf(made.requestId)).toMatchObject({
      phase: 'done',
      outcome: 'minted',
      certificateId: certificate.id.toString(),
    });
  }

  /** From this call on, the process does nothing any more. */
  async function dieAt(point: number, when: 'before' | 'after'): Promise<void> {
    const handler = verificationHandler(
      withEffects(fixture.deps, {
        before: ({ number }) => {
          if (number > point || (number === point && when === 'before')) throw new Killed();
        },
        after: ({ number }) => {
          if (number >= point) throw new Killed();
        },
      }),
    );
    const claimed = await claim(fixture.queue, 'doomed');
    await expect(
      handler(claimed, { signal: new AbortController().signal, logger: silentLogger() }),
    ).rejects.toThrow(Killed);
    await fixture.expireLease(claimed.lease.jobId);
  }

  it('covers the database, the gateway, the key and the chain', () => {
    const names = new Set(effects.map(({ name }) => name));
    for (const name of [
      'jobs.ensure',
      'jobs.move',
      'gateway.read',
      'gateway.hash',
      'queue.record',
      'signer.sign',
      'reader.read',
      'submitter.prepare',
      'submitter.send',
      'submitter.confirm',
    ]) {
      expect(names).toContain(name);
    }
  });

  it('is followed by one that finishes the work, and there is one transaction and one certificate', async () => {
    for (const { number } of effects) {
      for (const when of ['before', 'after'] as const) {
        const made = await fixture.submit();
        const signedBefore = fixture.chain.signed.length;
        await dieAt(number, when);
        const verdictKept = (await fixture.requestOf(made.requestId)).manifestHash !== null;
        const fetchedBefore = fixture.gateway.fetches.get(made.mediaCid) ?? 0;

        await runOnce(fixture, 'successor');

        await expectMintedOnce(made);
        expect(fixture.chain.signed.length - signedBefore).toBe(1);
        if (verdictKept) expect(fixture.gateway.fetches.get(made.mediaCid)).toBe(fetchedBefore);
      }
    }
  });

  it('changes nothing any more when it wakes after another has finished', async () => {
    for (const { number } of effects) {
      const made = await fixture.submit();
      const signedBefore = fixture.chain.signed.length;
      let finished: unknown = null;
      const handler = verificationHandler(
        withEffects(fixture.deps, {
          before: async (effect) => {
            if (effect.number !== number) return;
            await fixture.expireLease(made.requestId);
            expect(await runOnce(fixture, 'successor')).toMatchObject({ kind: 'completed' });
            finished = [await fixture.requestOf(made.requestId), await fixture.jobOf(made.jobId)];
          },
        }),
      );
      const claimed = await claim(fixture.queue, 'zombie');
      const outcome = await attempt(handler, claimed);

      const late = outcome.kind === 'lease_lost' || (await tooLate(claimed, outcome));
      expect({ number, outcome, late }).toEqual({ number, outcome, late: true });
      expect([await fixture.requestOf(made.requestId), await fixture.jobOf(made.jobId)]).toEqual(finished);
      expect(fixture.chain.signed.length - signedBefore).toBe(1);
      await expectMintedOnce(made);
    }
  });

  /** Writes the outcome as its lane would, which must find the lease gone. */
  async function tooLate(
    { lease }: Awaited<ReturnType<typeof claim>>,
    outcome: JobOutcome<VerificationRequest>,
  ): Promise<boolean> {
    const { queue } = fixture;
    if (outcome.kind === 'completed')
      return (await queue.complete(lease, outcome.patch)).kind === 'lease_lost';
    return outcome.kind === 'dead' && (await queue.deadLetter(lease, outcome.failure)).kind === 'lease_lost';
  }
});
