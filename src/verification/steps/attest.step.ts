import { PermanentError } from '../../platform/errors';
import { attest, type AttestationSigner } from '../attestation';
import { attestedFields } from '../attested-fields';
import type { StepResult, VerificationRun } from '../verification-run';

export interface AttestDeps {
  signer: AttestationSigner;
  /** 64 hex digits. */
  codeMeasurementHash: string;
}

/** Signs what was verified. The attestation goes on chain, so it is made once and kept. */
export async function attestContent(run: VerificationRun, deps: AttestDeps): Promise<StepResult> {
  const { request } = run;
  if (request.attestation === null) {
    const { contentHash, manifestHash } = request;
    if (contentHash === null || manifestHash === null) {
      throw new PermanentError('MISSING_VERDICT', 'there is nothing verified to attest');
    }
    const attestation = await attest(
      {
        eventId: request.eventId,
        requester: request.requester,
        mediaCid: request.mediaCid,
        manifestCid: request.manifestCid,
        contentHash,
        manifestHash,
        codeMeasurementHash: deps.codeMeasurementHash,
      },
      deps.signer,
    );
    const recorded = await run.record({ attestation });
    if (recorded.kind === 'stop') return recorded;
  }
  return run.reach('tee_verifying', attestedFields(run.request));
}
