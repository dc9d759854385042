import type { IpfsGateway } from '../spv/ipfs-gateway';
import { reachVerdict, type VerdictLimits } from '../spv/verdict';
import { next, type StepResult, type VerificationRun } from '../verification-run';

export interface VerifyContentDeps {
  gateway: IpfsGateway;
  limits: VerdictLimits;
}

/** SPV: fetches manifest and media once, and stores what they hash to and whether they belong together. */
export async function verifyContent(run: VerificationRun, deps: VerifyContentDeps): Promise<StepResult> {
  const processing = await run.reach('processing', {});
  if (processing.kind === 'stop') return processing;

  if (run.request.manifestHash === null) {
    const { manifestHash, canonicalManifestHash, contentHash, rejection } = await reachVerdict(
      deps.gateway,
      deps.limits,
      run.request,
      run.signal,
    );
    const recorded = await run.record({ manifestHash, canonicalManifestHash, contentHash, rejection });
    if (recorded.kind === 'stop') return recorded;
  }
  return run.request.rejection === null ? next : run.reject(run.request.rejection);
}
