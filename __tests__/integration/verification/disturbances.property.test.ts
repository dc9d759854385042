import fc from 'fast-check';
import { verificationHandler } from '../../../src/verification/verification.handler';
import { withEffects } from '../../support/verification-effects';
import {
  attempt,
  claim,
  runOnce,
  verificationFixture,
  type VerificationFixture,
} from '../../support/verification-fixture';

interface Disturbance {
  /** Which call of the try it strikes; tries that resume late have fewer. */
  at: number;
  kind: 'dies before' | 'dies after' | 'sleeps through its lease' | 'mint unknown' | 'mint expired';
}

const disturbance: fc.Arbitrary<Disturbance> = fc.record({
  at: fc.integer({ min: 1, max: 20 }),
  kind: fc.constantFrom(
    'dies before',
    'dies after',
    'sleeps through its lease',
    'mint unknown',
    'mint expired',
  ),
});

describe('any sequence of crashes, lost leases and doubtful mints', () => {
  let fixture: VerificationFixture;

  beforeAll(async () => {
    fixture = await verificationFixture({ maxAttempts: 100 });
  });
  afterAll(() => fixture.close());

  /** One try that is disturbed so; a sleeper's place is taken by an undisturbed worker. */
  async function suffer(requestId: string, { at, kind }: Disturbance): Promise<void> {
    fixture.chain.scripted =
      kind === 'mint unknown' ? ['unknown'] : kind === 'mint expired' ? ['expired'] : [];
    const handler = verificationHandler(
      withEffects(fixture.deps, {
        before: async ({ number }) => {
          if (kind === 'dies before' && number >= at) throw new Error('killed');
          if (kind !== 'sleeps through its lease' || number !== at) return;
          await fixture.expireLease(requestId);
          await runOnce(fixture, 'successor');
        },
        after: ({ number }) => {
          if (kind === 'dies after' && number >= at) throw new Error('killed');
        },
      }),
    );
    const claimed = await claim(fixture.queue);
    const outcome = await attempt(handler, claimed);
    if (outcome.kind === 'completed') await fixture.queue.complete(claimed.lease, outcome.patch);
    else await fixture.expireLease(requestId);
  }

  it('ends with one certificate, told alike by chain, request and job', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(disturbance, { maxLength: 4 }), async (disturbances) => {
        const made = await fixture.submit();
        const isOpen = async (): Promise<boolean> =>
          (await fixture.requestOf(made.requestId)).phase !== 'done';
        for (const next of disturbances) {
          if (await isOpen()) await suffer(made.requestId, next);
        }
        fixture.chain.scripted = [];
        if (await isOpen()) await runOnce(fixture);

        const certificate = fixture.chain.certificates.get(made.manifestHash);
        const { certificateId, transactionHash, outcome } = await fixture.requestOf(made.requestId);
        const job = await fixture.jobOf(made.jobId);
        const told = {
          certificateId: certificate?.id.toString(),
          transactionHash: certificate?.transactionHash,
        };
        expect({ certificateId, transactionHash, outcome }).toEqual({ ...told, outcome: 'minted' });
        expect(job).toMatchObject({
          status: 'completed',
          certificateId: told.certificateId,
          stellarTransactionHash: told.transactionHash,
          teeAttestationHash: certificate?.attestationHash,
        });
        const stages = job.timeline.map(({ stage }) => stage);
        expect(stages).toEqual(['pending', 'processing', 'tee_verifying', 'minting', 'completed']);
      }),
      { numRuns: 40 },
    );
  });
});
