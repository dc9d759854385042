import { EventEmitter } from 'node:events';
import type { Failure } from '../platform/errors';

export interface JobEvent {
  pipeline: string;
  jobId: string;
  attempt: number;
  epoch: number;
  lane: number;
}

export type WorkerStatus = 'running' | 'draining' | 'stopped';

/** What a worker pool tells of itself, as it happens. For figures and for tests that wait on a signal. */
export interface WorkerEventMap {
  claimed: [JobEvent];
  completed: [JobEvent & { durationMs: number }];
  released: [JobEvent & { durationMs: number; delayMs: number; failure?: Failure }];
  dead_lettered: [JobEvent & { durationMs: number; failure: Failure }];
  lease_lost: [JobEvent & { durationMs: number }];
  /** A lane looked for work and found none. */
  idle: [{ pipeline: string; lane: number }];
  /** Leases of one pipeline were extended; `lagMs` is how much later than planned. */
  renewed: [{ count: number; lost: number; lagMs: number }];
  heartbeat: [{ status: WorkerStatus }];
  /** The database could not be reached. */
  outage: [{ during: 'claim' | 'renewal' | 'settling' | 'maintenance'; error: unknown }];
  /** It could be reached again. */
  recovered: [];
}

export type WorkerEvents = EventEmitter<WorkerEventMap>;

export function createWorkerEvents(): WorkerEvents {
  return new EventEmitter<WorkerEventMap>();
}
