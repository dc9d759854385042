import { answerWithin } from '../platform/deadline';
import { describeFailure } from '../platform/errors';
import type { Logger } from '../platform/logger';
import type { DeadLetterRepository } from '../queue/dead-letters';
import type { WorkerHeartbeatRepository, WorkerView } from '../worker/worker-heartbeats';

/** What `GET /api/v1/worker/health` shows. Times are the database's clock. */
export interface WorkerHealthReport {
  /** healthy while at least one worker is alive. */
  status: 'healthy' | 'unhealthy';
  aliveWorkers: number;
  /** A worker is alive while it reports running and its last heartbeat is younger than this. */
  staleAfterMs: number;
  /** The most recently heard of first, a bounded list. */
  workers: WorkerView[];
  deadLetters: number;
  /** Set when the database could not be asked; the figures then mean nothing. */
  problem?: string;
}

export interface WorkerHealthService {
  /** Never rejects, and answers within two seconds: a database that is away is an answer too. */
  check(): Promise<WorkerHealthReport>;
}

export interface WorkerHealthOptions {
  heartbeats: WorkerHeartbeatRepository;
  deadLetters: DeadLetterRepository;
  staleMs: number;
  logger: Logger;
}

const ANSWER_TIMEOUT_MS = 2_000;
const MAX_WORKERS_LISTED = 100;

export function workerHealthService(options: WorkerHealthOptions): WorkerHealthService {
  const { heartbeats, deadLetters, staleMs, logger } = options;
  return {
    check: async () => {
      try {
        const [health, dead] = await answerWithin(
          ANSWER_TIMEOUT_MS,
          'DATABASE_TIMEOUT',
          Promise.all([
            heartbeats.readHealth({ staleMs, limit: MAX_WORKERS_LISTED }),
            deadLetters.countOpen(),
          ]),
        );
        return {
          status: health.healthy ? 'healthy' : 'unhealthy',
          aliveWorkers: health.alive,
          staleAfterMs: staleMs,
          workers: health.workers,
          deadLetters: dead,
        };
      } catch (error) {
        logger.warn({ err: error }, 'worker health could not be read');
        return {
          status: 'unhealthy',
          aliveWorkers: 0,
          staleAfterMs: staleMs,
          workers: [],
          deadLetters: 0,
          problem: `the database could not be asked (${describeFailure(error).code})`,
        };
      }
    },
  };
}
