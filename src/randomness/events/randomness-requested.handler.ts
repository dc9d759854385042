import { defineEventHandler, type ContractEvent, type EventHandler } from '../../ingestion/event-handler';
import { HttpProblem } from '../../platform/problem';
import { PermanentError, TransientError } from '../../platform/errors';
import type { RandomnessQueue } from '../jobs/randomness-queue';
import type { RandomnessDeadLetters } from '../jobs/randomness-dead-letters';
import { jobQueuePriority, type StoredRandomnessJob } from '../jobs/randomness-job.model';
import type { RandomnessJobs } from '../jobs/randomness-jobs.repository';
import type { RandomnessService, Submission } from '../randomness.service';
import { readRandomnessRequested } from './raffle-event';

export interface RandomnessRequestedDeps {
  service: RandomnessService;
  jobs: RandomnessJobs;
  queue: RandomnessQueue;
  deadLetters: RandomnessDeadLetters;
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

async function takeIn(event: ContractEvent, deps: RandomnessRequestedDeps): Promise<void> {
  const request = readRandomnessRequested(event);
  if (request === null) return;
  if (request.oracle !== null && !deps.ownAddresses().includes(request.oracle)) return;
  const { prizeXlm, priority } = request;
  const { kind, job } = await ensured(event, deps.service, {
    requestId: request.requestId,
    raffleId: request.raffleId,
    contractId: event.contractId,
    source: 'event',
    priority,
    requestedAt: event.ledgerClosedAt,
    requestedAtLedger: event.ledger,
    ...(prizeXlm === undefined ? {} : { prizeXlm }),
  });
  if (kind === 'already_there' && job.requestedAtLedger === null)
    await adopt(job, event, { prizeXlm, priority }, deps);
}

/**
 * Somebody asked by hand before the contract did. From here on the job is the contract's, with its deadline, and with its
 * priority where that is higher; had it died over being early, it lives again.
 * @throws TransientError when the job goes away at this very moment: then it is asked for anew.
 */
async function adopt(
  job: StoredRandomnessJob,
  event: ContractEvent,
  { prizeXlm, priority }: Pick<Submission, 'prizeXlm' | 'priority'>,
  { service, jobs, queue, deadLetters }: RandomnessRequestedDeps,
): Promise<void> {
  const jobId = job._id.toHexString();
  const adopted = await jobs.adopt(job._id, {
    requestedAt: event.ledgerClosedAt,
    requestedAtLedger: event.ledger,
    prizeXlm: prizeXlm ?? job.prizeXlm,
    priorityLevel: service.priorityFor({ prizeXlm, priority }),
  });
  const replayed =
    job.phase === 'dead' ? await deadLetters.replay(jobId, {}, 'The contract has asked for it') : null;
  if (!adopted || replayed?.kind === 'not_found')
    throw new TransientError(
      'JOB_VANISHED',
      `job ${job.requestId} was taken away while its contract asked for it`,
    );
  await queue.hasten(jobId, jobQueuePriority({ priorityLevel: service.priorityFor({ prizeXlm, priority }) }));
}

async function ensured(
  event: ContractEvent,
  service: RandomnessService,
  submission: Submission,
): ReturnType<RandomnessService['ensureJob']> {
  try {
    return await service.ensureJob(submission);
  } catch (error) {
    if (!(error instanceof HttpProblem)) throw error;
    // What the contract's own interface has no use for gets no better by being delivered again.
    throw new PermanentError('MALFORMED_EVENT', `event ${event.id}: ${error.message}`, { cause: error });
  }
}
