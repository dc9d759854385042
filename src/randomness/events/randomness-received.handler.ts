import type { Clock } from '../../platform/clock';
import {
  defineEventHandler,
  type ContractEvent,
  type EventHandler,
  type EventOutcome,
} from '../../ingestion/event-handler';
import type { TransactionHash } from '../../stellar/submission';
import type { SoloRunner } from '../../worker/solo-runner';
import type { RandomnessDeadLetters } from '../jobs/randomness-dead-letters';
import type { RandomnessJob, StoredRandomnessJob } from '../jobs/randomness-job.model';
import type { RandomnessJobs } from '../jobs/randomness-jobs.repository';
import { randomnessLifecycle } from '../jobs/randomness-lifecycle';
import type { RandomnessProcessorService } from '../processing/randomness-processor.service';
import type { RandomnessService } from '../randomness.service';
import { readRandomnessReceived } from './raffle-event';

export interface RandomnessReceivedDeps {
  service: RandomnessService;
  jobs: RandomnessJobs;
  runner: SoloRunner<RandomnessJob>;
  deadLetters: RandomnessDeadLetters;
  processor: RandomnessProcessorService;
  topic: string;
  contracts?: readonly string[];
  clock: Clock;
}

const RECHECK_MS = 2_000;
/** A delivery whose job has not turned up by then belongs to none of ours. */
const GIVE_UP_AFTER_MS = 3_600_000;
const handled: EventOutcome = { kind: 'handled' };

/**
 * Ends the job that a delivery belongs to, when no worker is at it. One that comes before its job is kept and delivered
 * again; of a job that a worker holds, the worker will see for itself. A job that was given up (its worker died on the last
 * attempt, with a transaction out) and whose seed turns up on chain after all is taken back from the dead letters.
 */
export function randomnessReceivedHandler(deps: RandomnessReceivedDeps): EventHandler {
  return defineEventHandler({
    name: 'randomness-received',
    topics: [deps.topic],
    ...(deps.contracts === undefined ? {} : { contracts: deps.contracts }),
    batch: 1,
    concurrency: 2,
    priority: 'normal',
    handle: async (events, { signal }) =>
      new Map(
        await Promise.all(
          events.map(async (event) => [event.id, await conclude(event, deps, signal)] as const),
        ),
      ),
  });
}

async function conclude(
  event: ContractEvent,
  deps: RandomnessReceivedDeps,
  signal: AbortSignal,
): Promise<EventOutcome> {
  const { clock, jobs, runner, processor } = deps;
  const received = readRandomnessReceived(event);
  // Without the seed it can't be told whose delivery it was; the worker will ask the raffle.
  const seed = received?.seed ?? null;
  if (received === null || seed === null) return handled;
  const job =
    received.requestId === null
      ? await jobs.findByRaffle(event.contractId, received.raffleId)
      : await deps.service.findOf({
          contractId: event.contractId,
          requestId: received.requestId,
          raffleId: received.raffleId,
        });
  if (job === null) return later(event, clock, 'its job is not there yet');
  if (job.phase === 'done' || (job.phase === 'dead' && !(await revived(job, seed, deps, signal))))
    return handled;
  const txHash = event.transactionHash as TransactionHash;
  await runner.run(
    job._id.toHexString(),
    (claimed, context) =>
      processor.concludeDelivered(
        { lease: claimed.lease, job: claimed.job },
        { seed, txHash, ledger: event.ledger },
        context.signal,
      ),
    signal,
  );
  const after = await jobs.findByKey(job.key);
  return after === null || randomnessLifecycle.isTerminal(after.currentState)
    ? handled
    : later(event, clock, 'a worker holds its job');
}

async function revived(
  job: StoredRandomnessJob,
  seed: string,
  { processor, deadLetters }: RandomnessReceivedDeps,
  signal: AbortSignal,
): Promise<boolean> {
  if (!(await processor.isOurs(job, seed, signal))) return false;
  const replayed = await deadLetters.replay(job._id.toHexString(), {}, 'Delivered after it was given up');
  return replayed.kind !== 'not_found';
}

const later = (event: ContractEvent, clock: Clock, reason: string): EventOutcome =>
  clock.now() - event.ledgerClosedAt.getTime() > GIVE_UP_AFTER_MS
    ? handled
    : { kind: 'postponed', delayMs: RECHECK_MS, reason };
