import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import { verifySignature } from '../../../src/stellar/keys';
import {
  codeMeasurementHash,
  runOnce,
  verificationFixture,
  type VerificationFixture,
} from '../../support/verification-fixture';

describe('a verification request', () => {
  let fixture: VerificationFixture;

  beforeAll(async () => {
    fixture = await verificationFixture();
  });
  afterAll(() => fixture.close());

  it('becomes a certificate, and the job shows each stage with what it produced', async () => {
    const made = await fixture.submit();
    const outcome = await runOnce(fixture);

    expect(outcome.kind === 'completed' && outcome.ledger).toBeGreaterThan(1000);
    const certificate = fixture.chain.certificates.get(made.manifestHash)!;
    const job = await fixture.jobOf(made.jobId);
    expect(job).toMatchObject({
      status: 'completed',
      ownerPublicKey: fixture.requester,
      requestId: made.requestId,
      contentHash: made.contentHash,
      manifestHash: made.manifestHash,
      teeAttestationHash: certificate.attestationHash,
      codeMeasurementHash,
      stellarTransactionHash: certificate.transactionHash,
      certificateId: certificate.id.toString(),
    });
    expect(job.timeline.map(({ stage }) => stage)).toEqual([
      'pending',
      'processing',
      'tee_verifying',
      'minting',
      'completed',
    ]);
    expect(certificate.owner).toBe(fixture.requester);
    expect(await fixture.service.findRequest(made.requestId)).toMatchObject({
      status: 'completed',
      certificateId: certificate.id.toString(),
      transactionHash: certificate.transactionHash,
      attempts: 1,
    });
  });

  it('is attested by the hash of the canonical document, signed as raw bytes', async () => {
    const made = await fixture.submit();
    await runOnce(fixture);
    const request = await fixture.requestOf(made.requestId);
    const document = {
      version: 1,
      eventId: request.eventId,
      requester: fixture.requester,
      mediaCid: made.mediaCid,
      manifestCid: made.manifestCid,
      contentHash: made.contentHash,
      manifestHash: made.manifestHash,
      codeMeasurementHash,
      oracle: fixture.signer.publicKey,
    };
    const hash = createHash('sha256').update(canonicalize(document)!).digest();
    expect(request.attestation?.attestationHash).toBe(hash.toString('hex'));
    expect(
      verifySignature(fixture.signer.publicKey, hash, Buffer.from(request.attestation!.signature, 'hex')),
    ).toBe(true);
  });
});
