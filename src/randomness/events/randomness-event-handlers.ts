import type { EventHandler } from '../../ingestion/event-handler';
import type { RandomnessSettings } from '../configured-parts';
import type { ProvideRandomnessContract } from '../contracts/provide-randomness.contract';
import type { ReceiveRandomnessContract } from '../contracts/receive-randomness.contract';
import { raffleCreatedHandler, type RaffleCreatedDeps } from './raffle-created.handler';
import { raffleInstancesHandlers } from './raffle-instances.handler';
import { randomnessReceivedHandler, type RandomnessReceivedDeps } from './randomness-received.handler';
import { randomnessRequestedHandler, type RandomnessRequestedDeps } from './randomness-requested.handler';

export interface RandomnessEventDeps
  extends
    Omit<RandomnessReceivedDeps, 'topic' | 'contracts'>,
    Pick<RandomnessRequestedDeps, 'ownAddresses' | 'queue'>,
    Pick<RaffleCreatedDeps, 'commitments' | 'submitter'> {
  settings: RandomnessSettings;
  /** Null where a factory's raffles are all there is. */
  contractId: string | null;
  contract: ReceiveRandomnessContract | ProvideRandomnessContract;
}

/** What the pipeline listens to: requests, deliveries, and new raffles, which mean something else to each interface. */
export function randomnessEventHandlers(deps: RandomnessEventDeps): EventHandler[] {
  const { settings, contract, contractId } = deps;
  // One contract is told by configuration; where each raffle is a contract, all that are followed count.
  const contracts =
    contract.interfaceName === 'receive_randomness' && contractId !== null ? { contracts: [contractId] } : {};
  return [
    randomnessRequestedHandler({ ...deps, topic: settings.RANDOMNESS_REQUESTED_TOPIC, ...contracts }),
    randomnessReceivedHandler({ ...deps, topic: settings.RANDOMNESS_RECEIVED_TOPIC, ...contracts }),
    ...(contract.interfaceName === 'receive_randomness'
      ? commitmentHandlers(deps, contract)
      : instanceHandlers(deps)),
  ];
}

function commitmentHandlers(
  { settings, contractId, ...deps }: RandomnessEventDeps,
  contract: ReceiveRandomnessContract,
): EventHandler[] {
  const thresholdXlm = settings.COMMIT_REVEAL_THRESHOLD_XLM;
  if (thresholdXlm === 0 || contractId === null) return [];
  return [
    raffleCreatedHandler({
      ...deps,
      contract,
      topic: settings.RAFFLE_CREATED_TOPIC,
      contracts: [contractId],
      thresholdXlm,
      confirmationTimeoutMs: settings.QUEUE_CONFIRMATION_TIMEOUT_MS,
    }),
  ];
}

function instanceHandlers({ settings, contractId }: RandomnessEventDeps): EventHandler[] {
  const factoryId = settings.RAFFLE_FACTORY_CONTRACT_ID;
  return raffleInstancesHandlers({
    topic: settings.RAFFLE_CREATED_TOPIC,
    contracts: [contractId, factoryId ?? null].filter((id) => id !== null),
  });
}
