import { defineEventHandler, type EventHandler } from '../../ingestion/event-handler';
import { readRaffleInstance } from './raffle-event';

export interface RaffleInstancesDeps {
  /** First topic of the event that tells of a new raffle. */
  topic: string;
  /** Contracts whose word is taken for it: anyone can emit such an event. */
  contracts: readonly string[];
}

/** After these a raffle asks for nothing more. */
const ENDINGS = ['raffle_finalized', 'raffle_cancelled', 'raffle_failed'];

/** Where each raffle is a contract of its own: reads the events of those that the factory makes, until they are over. */
export function raffleInstancesHandlers({ topic, contracts }: RaffleInstancesDeps): EventHandler[] {
  return [
    defineEventHandler({
      name: 'raffle-instances',
      topics: [topic],
      contracts,
      batch: 50,
      concurrency: 1,
      priority: 'high',
      handle: (events, { following }) => {
        for (const event of events) {
          const instance = readRaffleInstance(event);
          if (instance !== null) following.follow(instance, event.ledger);
        }
        return Promise.resolve(undefined);
      },
    }),
    defineEventHandler({
      name: 'raffle-endings',
      topics: ENDINGS,
      batch: 50,
      concurrency: 1,
      priority: 'low',
      handle: (events, { following }) => {
        for (const { contractId } of events) following.unfollow(contractId);
        return Promise.resolve(undefined);
      },
    }),
  ];
}
