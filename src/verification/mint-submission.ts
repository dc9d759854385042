import { PermanentError } from '../platform/errors';
import type { IntentId, SubmissionRequest } from '../stellar/submission';
import { DUPLICATE_MANIFEST, type MintRequest, type Provenance } from './provenance';
import type { StoredVerificationRequest } from './verification-request.model';

/**
 * The mint of an attested request, for the submitter. One intent for a request and all its replays: whichever of its
 * transactions lands first is the only one.
 * @throws PermanentError MISSING_TEE_FIELDS when the request has no attestation yet.
 */
export function mintSubmission(
  request: StoredVerificationRequest,
  epoch: number,
  provenance: Provenance,
): SubmissionRequest {
  const { _id, manifestHash, attestation, requester, mediaCid } = request;
  if (manifestHash === null || attestation === null) {
    throw new PermanentError('MISSING_TEE_FIELDS', 'there is no attestation to mint');
  }
  const wanted: MintRequest = {
    owner: requester,
    storageId: mediaCid,
    manifestHash,
    attestationHash: attestation.attestationHash,
  };
  return {
    intent: `mint:${_id.toHexString()}` as IntentId,
    epoch,
    call: provenance.mintCall(wanted),
    feeClass: 'standard',
    alreadyDoneCodes: [DUPLICATE_MANIFEST],
    findEvidence: (signal) => provenance.findMint(wanted, signal),
  };
}
