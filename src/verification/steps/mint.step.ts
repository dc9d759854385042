import { OutcomeUnknownError, PermanentError, TransientError } from '../../platform/errors';
import type { SubmissionOutcome, SubmissionRequest, TransactionSubmitter } from '../../stellar/submission';
import { mintSubmission } from '../mint-submission';
import { certificateIdOf, type Provenance } from '../provenance';
import { type AuthorizeDeps, onlyWhileAuthorized } from './authorized-evidence';
import { leaseLost, type StepResult, type VerificationRun } from '../verification-run';

export interface MintDeps {
  submitter: TransactionSubmitter;
  provenance: Provenance;
  /** How long one try waits for its transaction to be final. */
  confirmTimeoutMs: number;
  /** When to look again at one that wasn't. */
  recheckMs: number;
}

/** An expired transaction is rebuilt at once so many times in one try; a network that drops more than that is in trouble. */
const MAX_BUILDS = 3;

/**
 * Prepare (registry and provider precheck first) → hash onto the request → job to minting → send → confirm. Every part may be repeated after a crash: the
 * submitter answers `prepare` with what is on its way, and keeps one transaction per intent.
 */
export async function mint(
  run: VerificationRun,
  deps: MintDeps,
  authorization: AuthorizeDeps,
): Promise<StepResult> {
  const request = mintSubmission(run.request, run.lease.epoch, deps.provenance);
  try {
    for (let build = 1; build <= MAX_BUILDS; build += 1) {
      const outcome = await land(run, deps, request, authorization);
      if (outcome.kind === 'stop' || outcome.kind === 'next') return outcome;
      if (outcome.kind !== 'expired') return await conclude(run, deps, outcome);
      // Cleared, so that a failure from here on counts as one of nothing sent.
      const cleared = await run.record({ transactionHash: null });
      if (cleared.kind === 'stop') return cleared;
    }
  } catch (error) {
    run.signal.throwIfAborted();
    if (run.request.transactionHash === null || !isPassing(error)) throw error;
    // A transaction is on its way: whatever keeps us from seeing its end must not be counted until the request is given
    // up, for then a certificate would be minted to a job that says it failed.
    run.logger.warn(
      { err: error, transactionHash: run.request.transactionHash },
      'mint outcome not known yet',
    );
    return run.postpone(deps.recheckMs, 'the mint is on its way and its outcome could not be asked');
  }
  return run.retry({
    code: 'MINT_EXPIRED',
    message: `${MAX_BUILDS} transactions in a row expired without landing`,
    kind: 'transient',
    retryable: true,
  });
}

async function land(
  run: VerificationRun,
  deps: MintDeps,
  request: SubmissionRequest,
  authorization: AuthorizeDeps,
): Promise<SubmissionOutcome | StepResult> {
  const authorized = onlyWhileAuthorized(request, run.request, authorization);
  const prepared = await deps.submitter.prepare(authorized, run.signal);
  if (prepared.kind !== 'prepared') return prepared;
  if (run.request.transactionHash !== prepared.hash) {
    const recorded = await run.record({ transactionHash: prepared.hash });
    if (recorded.kind === 'stop') return recorded;
  }
  const shown = await run.showMint(prepared.hash);
  if (shown.kind === 'stop') return shown;

  run.signal.throwIfAborted();
  const sent = await deps.submitter.send(request, run.signal);
  if (sent.kind !== 'sent') return sent;
  return deps.submitter.confirm(request, { timeoutMs: deps.confirmTimeoutMs, signal: run.signal });
}

async function conclude(
  run: VerificationRun,
  deps: MintDeps,
  outcome: Exclude<SubmissionOutcome, { kind: 'expired' }>,
): Promise<StepResult> {
  switch (outcome.kind) {
    case 'success':
      return run.complete(certificateIdOf(outcome.returnValue), outcome.hash, outcome.ledger);
    case 'already_done': {
      const { evidence } = outcome;
      if (!evidence.ours) {
        return run.reject({ code: 'MANIFEST_ALREADY_CERTIFIED', message: evidence.summary });
      }
      const hash = evidence.transactionHash ?? run.request.transactionHash;
      if (hash === null) {
        throw new PermanentError(
          'MISSING_TRANSACTION_HASH',
          'our certificate is there, but no transaction of ours',
        );
      }
      return run.complete(certificateIdOf(evidence.returnValue), hash, evidence.ledger);
    }
    case 'rejected':
      return run.dead({ code: outcome.code, message: outcome.message, kind: 'rejected', retryable: false });
    case 'unknown':
      return run.postpone(deps.recheckMs, 'the mint is on its way');
    case 'superseded':
      return leaseLost;
  }
}

const isPassing = (error: unknown): boolean =>
  error instanceof TransientError || error instanceof OutcomeUnknownError;
