import { variable } from './variables';

/** The worker processes. */
export const workerSettings = {
  VERIFICATION_WORKER_POLL_INTERVAL_MS: variable.durationMs(
    5000,
    'Longest pause between two looks for work while there is none, of the lanes of every pipeline (randomness as well). Busy lanes do not pause.',
    { min: 10 },
  ),
  VERIFICATION_WORKER_BATCH_SIZE: variable.count(
    10,
    'Jobs in one cycle, shared by the lanes; each pipeline, randomness as well, has cycles of its own. A heartbeat is written after each cycle.',
    { min: 1, max: 10_000 },
  ),
  VERIFICATION_WORKER_MAX_ATTEMPTS: variable.count(3, 'Attempts before a request is dead-lettered.', {
    min: 1,
    max: 100,
  }),
  VERIFICATION_WORKER_RETRY_BASE_MS: variable.durationMs(
    30_000,
    'Longest wait before the second attempt. Doubles with each attempt, 15 minutes at most.',
  ),
  VERIFICATION_WORKER_LEASE_MS: variable.durationMs(
    300_000,
    'How long a claim lasts unless it is renewed, which happens every third of it. Work of a dead process is taken over after so long.',
    { min: 1000 },
  ),
  VERIFICATION_WORKER_CONCURRENCY: variable.count(1, 'Requests that one process works on at the same time.', {
    min: 1,
    max: 256,
  }),
  VERIFICATION_WORKER_HEARTBEAT_INTERVAL_MS: variable.durationMs(
    15_000,
    'Time between two heartbeats of a worker process, whatever pipelines it works for.',
    { min: 10 },
  ),
  WORKER_HEARTBEAT_STALE_MS: variable.durationMs(
    60_000,
    'A worker whose last heartbeat is older counts as gone. Must be longer than the heartbeat interval.',
  ),
  WORKER_DRAIN_TIMEOUT_MS: variable.durationMs(
    30_000,
    'How long a stopping worker waits for the work in hand before it hands it back.',
    { min: 0 },
  ),
};
