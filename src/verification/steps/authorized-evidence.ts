import { PermanentError } from '../../platform/errors';
import type { SubmissionRequest } from '../../stellar/submission';
import { assertAuthorized, type AuthorizationOptions } from '../authorization';
import type { VerificationRequest } from '../verification-request.model';

export interface AuthorizeDeps {
  authorization: AuthorizationOptions;
  /** G… strkey of the attesting key, and its 32 bytes. */
  publicKey: string;
  rawPublicKey: Uint8Array;
}

/**
 * The same submission, which asks before each build, and after it was seen that there is no certificate yet, whether the chain
 * trusts the attestation. The answer isn't stored: trust can be withdrawn. A try that only waits for what is on its way builds
 * nothing, and so doesn't ask.
 */
export function onlyWhileAuthorized(
  submission: SubmissionRequest,
  { attestation }: VerificationRequest,
  deps: AuthorizeDeps,
): SubmissionRequest {
  return {
    ...submission,
    findEvidence: async (signal) => {
      const evidence = await submission.findEvidence(signal);
      if (evidence !== null) return evidence;
      if (attestation === null)
        throw new PermanentError('MISSING_TEE_FIELDS', 'there is no attestation to mint');
      const { codeMeasurementHash } = attestation;
      await assertAuthorized(deps.authorization, { ...deps, codeMeasurementHash }, signal);
      return null;
    },
  };
}
