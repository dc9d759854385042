import { PermanentError } from '../platform/errors';
import type { JobFields } from './verification-jobs.repository';
import type { VerificationRequest } from './verification-request.model';

/**
 * What a job shows from `tee_verifying` on.
 * @throws PermanentError MISSING_TEE_FIELDS when the request has no attestation yet.
 */
export function attestedFields(request: VerificationRequest): JobFields {
  const { contentHash, manifestHash, canonicalManifestHash, attestation } = request;
  if (attestation === null) {
    throw new PermanentError('MISSING_TEE_FIELDS', 'the request has no attestation');
  }
  return {
    contentHash,
    manifestHash,
    canonicalManifestHash,
    teeAttestationHash: attestation.attestationHash,
    teeSignature: attestation.signature,
    codeMeasurementHash: attestation.codeMeasurementHash,
  };
}
