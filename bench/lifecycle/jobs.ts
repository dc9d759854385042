import { Types } from 'mongoose';
import { priorityLevel } from '../../src/randomness/jobs/priority';
import {
  newRandomnessJob,
  type RandomnessJobInput,
  type StoredRandomnessJob,
} from '../../src/randomness/jobs/randomness-job.model';
import type { JobState } from '../../src/randomness/jobs/randomness-lifecycle';

export const jobInput = (requestId: string, index: number, now: Date): RandomnessJobInput => ({
  key: requestId,
  requestId,
  contractId: 'CA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUWDA',
  contractRequestId: String(index),
  raffleId: index,
  source: 'event',
  prizeXlm: null,
  priorityLevel: priorityLevel.low,
  requestedAt: now,
  requestedAtLedger: 1000,
  oracleKey: 'GBENCH',
});

/** A job as the queue stores it, in the given state. */
export function storedJob(index: number, currentState: JobState, now: Date): StoredRandomnessJob {
  const requestId = `bench-${index}`;
  const payload = newRandomnessJob(jobInput(requestId, index, now), now);
  const ended = currentState === 'confirmed' || currentState === 'failed';
  return {
    ...payload,
    currentState,
    _id: new Types.ObjectId(),
    key: requestId,
    phase: ended ? 'done' : 'ready',
    order: now.getTime() + index,
    priority: 0,
    dueAt: now,
    attempts: 0,
    maxAttempts: 5,
    epoch: 0,
    lease: null,
    settled: null,
    errors: [],
    enqueuedAt: now,
    finishedAt: ended ? now : null,
    deadLetterPending: false,
    replays: 0,
  };
}
