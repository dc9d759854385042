import { Schema, type Connection, type Model } from 'mongoose';
import type { WorkerStatus } from './worker-events';

export interface LaneReport {
  pipeline: string;
  lanes: number;
  /** Lanes at work at the time of the heartbeat. */
  busy: number;
}

/** One worker process, one boot. All times by the database's clock. */
export interface WorkerHeartbeat {
  workerId: string;
  status: WorkerStatus;
  startedAt: Date;
  lastHeartbeatAt: Date;
  /** Highest ledger that finished work has named; null before the first. */
  lastProcessedLedger: number | null;
  /** Attempts that ended in completion, since the start. */
  processedCount: number;
  /** Attempts that ended in a retry or a dead letter, since the start. */
  failedCount: number;
  /** Duration of the attempt that finished last; null before the first. */
  lastProcessingMs: number | null;
  pipelines: LaneReport[];
}

export const heartbeatIndex = { worker: 'heartbeat_worker', recent: 'heartbeat_recent' } as const;

/** Long enough to look into last week's incident. */
const RETENTION_SECONDS = 7 * 24 * 3600;
const required = true;

const schema = new Schema<WorkerHeartbeat>(
  {
    workerId: { type: String, required },
    status: { type: String, enum: ['running', 'draining', 'stopped'], required },
    startedAt: { type: Date, required },
    lastHeartbeatAt: { type: Date, required },
    lastProcessedLedger: { type: Number, default: null },
    processedCount: { type: Number, required },
    failedCount: { type: Number, required },
    lastProcessingMs: { type: Number, default: null },
    pipelines: { type: [{ pipeline: String, lanes: Number, busy: Number, _id: false }], default: [] },
  },
  { collection: 'workerHeartbeats' },
);
// The worker's own upsert.
schema.index({ workerId: 1 }, { name: heartbeatIndex.worker, unique: true });
// Health reads the newest; those of workers long gone expire.
schema.index({ lastHeartbeatAt: -1 }, { name: heartbeatIndex.recent, expireAfterSeconds: RETENTION_SECONDS });

export function workerHeartbeatModel(connection: Connection): Model<WorkerHeartbeat> {
  return connection.model<WorkerHeartbeat>('WorkerHeartbeat', schema);
}
