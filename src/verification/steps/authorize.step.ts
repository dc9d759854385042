import { assertAuthorized, type AuthorizationOptions } from '../authorization';
import { next, type StepResult, type VerificationRun } from '../verification-run';

export interface AuthorizeDeps {
  authorization: AuthorizationOptions;
  /** G… strkey of the attesting key, and its 32 bytes. */
  publicKey: string;
  rawPublicKey: Uint8Array;
}

/**
 * Asks, before anything is sent, whether the chain trusts the attestation. The answer isn't stored: trust can be
 * withdrawn, so each try that is about to build a transaction asks anew, and one that only waits for its own doesn't.
 */
export async function authorize(run: VerificationRun, deps: AuthorizeDeps): Promise<StepResult> {
  const { attestation, transactionHash } = run.request;
  if (transactionHash !== null || attestation === null) return next;
  await assertAuthorized(
    deps.authorization,
    {
      publicKey: deps.publicKey,
      rawPublicKey: deps.rawPublicKey,
      codeMeasurementHash: attestation.codeMeasurementHash,
    },
    run.signal,
  );
  return next;
}
