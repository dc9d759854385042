import {
  defineEventHandler,
  type ContractEvent,
  type EventHandler,
  type EventOutcome,
} from '../../ingestion/event-handler';
import type { Clock } from '../../platform/clock';
import type { Provenance } from '../provenance';
import { stageOf, verificationJobLifecycle } from '../verification-job.lifecycle';
import type { VerificationJob } from '../verification-job.model';
import type { VerificationJobs } from '../verification-jobs.repository';
import { addressOf, hashOf, u64Of } from './event-fields';

export interface CertificateMintedOptions {
  jobs: VerificationJobs;
  provenance: Provenance;
  topic: string;
  /** C… strkey of the only contract that is listened to. */
  contractId: string;
  clock: Clock;
  /** How long after its ledger closed an event is kept for a job that isn't there, or not yet minting. */
  earlyWindowMs?: number;
}

interface Mint {
  owner: string;
  certificateId: bigint;
  manifestHash: string;
  transactionHash: string;
}

const DEFAULT_EARLY_WINDOW_MS = 15 * 60_000;
const MIN_RECHECK_MS = 5000;

/**
 * Chain → job: completes the job whose mint it tells of. The worker that waits for the transaction does the same; whoever
 * comes second finds it done. An event that comes before its job is minting is kept and tried again, until it is clear
 * that the certificate is somebody else's.
 */
export function certificateMintedHandler(options: CertificateMintedOptions): EventHandler {
  return defineEventHandler({
    name: 'verification-completion',
    topics: [options.topic],
    contracts: [options.contractId],
    concurrency: 8,
    priority: 'normal',
    handle: async (events, { signal }) => {
      const outcomes = new Map<string, EventOutcome>();
      for (const event of events) outcomes.set(event.id, await handleOne(event, options, signal));
      return outcomes;
    },
  });
}

async function handleOne(
  event: ContractEvent,
  options: CertificateMintedOptions,
  signal: AbortSignal,
): Promise<EventOutcome> {
  const [, owner, certificateId, manifestHash] = event.topics;
  const mint: Mint = {
    owner: addressOf(owner, 'owner'),
    certificateId: u64Of(certificateId, 'certificate_id'),
    manifestHash: hashOf(manifestHash, 'manifest_hash'),
    transactionHash: event.transactionHash,
  };
  const found = await options.jobs.ofManifest(mint.manifestHash, mint.owner);
  for (const job of found) {
    if (await completes(job, mint, options, signal)) return { kind: 'handled' };
  }
  const ageMs = options.clock.now() - event.ledgerClosedAt.getTime();
  if (ageMs >= (options.earlyWindowMs ?? DEFAULT_EARLY_WINDOW_MS)) return { kind: 'handled' };
  // The older, the rarer: most of these are certificates of others, and there may be many.
  const delayMs = Math.max(MIN_RECHECK_MS, ageMs);
  return { kind: 'postponed', delayMs, reason: 'no job is minting this certificate' };
}

/** True when the certificate is this job's, and the job says so now. */
async function completes(
  seen: VerificationJob,
  mint: Mint,
  { jobs, provenance }: CertificateMintedOptions,
  signal: AbortSignal,
): Promise<boolean> {
  const certificateId = mint.certificateId.toString();
  if (seen.status === 'completed') return seen.certificateId === certificateId;
  if (verificationJobLifecycle.isTerminal(seen.status) || stageOf(seen.status) < stageOf('minting'))
    return false;
  // A fee bump lands under another hash than the job shows; then the certificate's own attestation tells whose it is.
  const byTransaction = seen.stellarTransactionHash === mint.transactionHash;
  const ours =
    byTransaction ||
    (await provenance.certificate(mint.certificateId, signal)).attestationHash === seen.teeAttestationHash;
  if (!ours) return false;
  const moved = await jobs.move({
    seen,
    to: 'completed',
    // The job's own: this takes it from no worker, and is refused if one has claimed it since.
    epoch: seen.epoch,
    actor: 'oracle',
    fields: { certificateId },
  });
  return moved.kind === 'moved' || (moved.kind === 'elsewhere' && moved.job.certificateId === certificateId);
}
