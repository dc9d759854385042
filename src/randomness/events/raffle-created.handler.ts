import type { Clock } from '../../platform/clock';
import { TransientError } from '../../platform/errors';
import { type ContractEvent, defineEventHandler, type EventHandler } from '../../ingestion/event-handler';
import type { IntentId, SubmissionRequest, TransactionSubmitter } from '../../stellar/submission';
import type { Commitments } from '../seeds/commitments.repository';
import type { ReceiveRandomnessContract } from '../contracts/receive-randomness.contract';
import { readRaffleCreated } from './raffle-event';

export interface RaffleCreatedDeps {
  commitments: Commitments;
  contract: ReceiveRandomnessContract;
  submitter: TransactionSubmitter;
  topic: string;
  contracts: readonly string[];
  /** Prize from which a raffle gets a commitment. */
  thresholdXlm: number;
  confirmationTimeoutMs: number;
  clock: Clock;
}

/**
 * Commits to the randomness of large raffles while their tickets are still for sale. Delivered again after a crash or a
 * failure, it goes on with the same opening and the same transaction.
 */
export function raffleCreatedHandler(deps: RaffleCreatedDeps): EventHandler {
  return defineEventHandler({
    name: 'raffle-created',
    topics: [deps.topic],
    contracts: deps.contracts,
    concurrency: 1,
    priority: 'normal',
    handle: async (events, { signal }) => {
      for (const event of events) await commit(event, deps, signal);
      return undefined;
    },
  });
}

async function commit(event: ContractEvent, deps: RaffleCreatedDeps, signal: AbortSignal): Promise<void> {
  const created = readRaffleCreated(event);
  if (created === null || created.prizeXlm < deps.thresholdXlm) return;
  const { raffleId } = created;
  const job = {
    contractId: event.contractId,
    contractRequestId: '',
    raffleId,
    requestedAtLedger: event.ledger,
  };
  // Behind the end of the sale a commitment would be to a seed that we could have chosen with the tickets in sight.
  if ((await deps.contract.view(job, signal)).status !== 'open') return;
  const { commitment } = await deps.commitments.ensure(
    event.contractId,
    raffleId,
    new Date(deps.clock.now()),
  );
  const request: SubmissionRequest = {
    intent: `randomness-commitment:${event.contractId}:${raffleId}` as IntentId,
    // The event has one handler at a time; should two overlap, they drive one stored transaction.
    epoch: 1,
    call: deps.contract.commitCall(job, commitment),
    minLedger: event.ledger,
    feeClass: 'standard',
    alreadyDoneCodes: [],
    findEvidence: async (aborts) => {
      const view = await deps.contract.view(job, aborts);
      if (view.commitment !== null) {
        return { ours: view.commitment === commitment, summary: 'the raffle has a commitment' };
      }
      return view.status === 'open' ? null : { ours: false, summary: `the raffle is ${view.status}` };
    },
  };
  const { submitter, confirmationTimeoutMs: timeoutMs } = deps;
  const prepared = await submitter.prepare(request, signal);
  const sent = prepared.kind === 'prepared' ? await submitter.send(request, signal) : prepared;
  const outcome = sent.kind === 'sent' ? await submitter.confirm(request, { timeoutMs, signal }) : sent;
  // Refused for good: the raffle goes without a commitment, and its randomness is delivered the ordinary way.
  if (outcome.kind === 'unknown' || outcome.kind === 'expired') {
    throw new TransientError(
      'COMMITMENT_UNCONFIRMED',
      `the commitment of raffle ${raffleId} is not confirmed`,
    );
  }
}
