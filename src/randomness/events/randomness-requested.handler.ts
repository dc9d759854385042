import { defineEventHandler, type ContractEvent, type EventHandler } from '../../ingestion/event-handler';
import type { RandomnessService } from '../randomness.service';
import { readRandomnessRequested } from './raffle-event';

export interface RandomnessRequestedDeps {
  service: RandomnessService;
  topic: string;
  /** Contracts whose requests count; left out: all that are followed. */
  contracts?: readonly string[];
  /** G… addresses that are us. A request that names another oracle is for that one. */
  ownAddresses: () => readonly string[];
}

/**
 * Turns requests into jobs. Idempotent: the request's own id is the job's key. Priority comes from the followed contract;
 * a replay can't be asked for by any event.
 */
export function randomnessRequestedHandler(deps: RandomnessRequestedDeps): EventHandler {
  return defineEventHandler({
    name: 'randomness-requested',
    topics: [deps.topic],
    ...(deps.contracts === undefined ? {} : { contracts: deps.contracts }),
    batch: 1,
    concurrency: 4,
    priority: 'high',
    handle: async (events) => {
      for (const event of events) await takeIn(event, deps);
      return undefined;
    },
  });
}

async function takeIn(
  event: ContractEvent,
  { service, ownAddresses }: RandomnessRequestedDeps,
): Promise<void> {
  const request = readRandomnessRequested(event);
  if (request === null) return;
  if (request.oracle !== null && !ownAddresses().includes(request.oracle)) return;
  await service.ensureJob({
    requestId: request.requestId,
    raffleId: request.raffleId,
    contractId: event.contractId,
    source: 'event',
    priority: request.priority,
    requestedAt: event.ledgerClosedAt,
    requestedAtLedger: event.ledger,
    ...(request.prizeXlm === undefined ? {} : { prizeXlm: request.prizeXlm }),
  });
}
