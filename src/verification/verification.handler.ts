import type { WorkerQueue } from '../queue/worker-queue';
import type { JobHandler } from '../worker/job-handler';
import { attestContent, type AttestDeps } from './steps/attest.step';
import type { AuthorizeDeps } from './steps/authorized-evidence';
import { mint, type MintDeps } from './steps/mint.step';
import { verifyContent, type VerifyContentDeps } from './steps/verify-content.step';
import type { VerificationJobs } from './verification-jobs.repository';
import type { VerificationRequest } from './verification-request.model';
import { VerificationRun } from './verification-run';

export interface VerificationHandlerDeps {
  queue: WorkerQueue<VerificationRequest>;
  jobs: VerificationJobs;
  content: VerifyContentDeps;
  attestation: AttestDeps;
  authorization: AuthorizeDeps;
  mint: MintDeps;
}

/** The pipeline: each step does what the request still lacks, so a try begins wherever the last one was cut off. */
export function verificationHandler(deps: VerificationHandlerDeps): JobHandler<VerificationRequest> {
  return async (claimed, context) => {
    const run = new VerificationRun(claimed, context, deps);
    const steps = [
      () => run.open(),
      () => verifyContent(run, deps.content),
      () => attestContent(run, deps.attestation),
      () => mint(run, deps.mint, deps.authorization),
    ];
    for (const step of steps) {
      context.signal.throwIfAborted();
      const result = await step();
      if (result.kind === 'stop') return result.outcome;
    }
    throw new TypeError('the last step of the pipeline did not end it');
  };
}
