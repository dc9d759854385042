import type { Connection } from 'mongoose';
import { answerWithin } from '../platform/deadline';
import { describeFailure, TransientError } from '../platform/errors';
import type { WorkerPool } from '../worker/worker-pool';

/** One thing this process needs before it can do its work. Resolves when it is there, rejects when not. */
export interface ReadinessCheck {
  name: string;
  check: () => Promise<unknown>;
}

export interface Readiness {
  ready: boolean;
  checks: { name: string; ready: boolean; problem?: string }[];
}

/** An orchestrator probes every few seconds and wants an answer, not a wait for the driver's own timeouts. */
const CHECK_TIMEOUT_MS = 2_000;

export async function checkReadiness(checks: readonly ReadinessCheck[]): Promise<Readiness> {
  const results = await Promise.all(
    checks.map(async ({ name, check }) => {
      try {
        await answerWithin(CHECK_TIMEOUT_MS, 'READINESS_TIMEOUT', check());
        return { name, ready: true };
      } catch (error) {
        const { code, message } = describeFailure(error);
        return { name, ready: false, problem: `${code}: ${message}` };
      }
    }),
  );
  return { ready: results.every(({ ready }) => ready), checks: results };
}

export const databaseCheck = (connection: Connection): ReadinessCheck => ({
  name: 'database',
  check: async () => connection.db?.command({ ping: 1 }),
});

export const workerCheck = (pool: WorkerPool): ReadinessCheck => ({
  name: 'worker',
  check: () =>
    pool.healthy
      ? Promise.resolve()
      : Promise.reject(
          new TransientError('WORKER_NOT_WORKING', 'it is stopping, or its database does not answer'),
        ),
});
