import { Schema, type Connection, type Model } from 'mongoose';

/** What a pipeline knows of a job that a dead letter should name. All optional, all for people. */
export interface DeadLetterSubject {
  eventId?: string;
  verificationJobId?: string;
  mediaCid?: string;
  manifestCid?: string;
  requester?: string;
  /** Anything else of the pipeline's. */
  details?: Record<string, unknown>;
}

export type DeadLetterReason = 'retries_exhausted' | 'non_retryable' | 'worker_died';

export interface DeadLetteredRequest extends DeadLetterSubject {
  pipeline: string;
  /** The job's idempotency key; unique within the pipeline. */
  requestId: string;
  /** The queue document. */
  jobId: string;
  /** The fence: a record is only ever replaced by one of the same or a later epoch. */
  epoch: number;
  attempts: number;
  replays: number;
  reason: DeadLetterReason;
  errorCode: string;
  /** At most 1000 characters. */
  errorMessage: string;
  /** Whether the last error would have been worth another attempt. */
  retryable: boolean;
  workerId: string;
  /** Database clock. */
  deadLetteredAt: Date;
  /** Set while the job is out of the dead letters again. Database clock. */
  replayedAt: Date | null;
}

export const deadLetterIndex = {
  request: 'dead_letter_request',
  open: 'dead_letter_open',
  openByPipeline: 'dead_letter_open_by_pipeline',
} as const;

const required = true;

const schema = new Schema<DeadLetteredRequest>(
  {
    pipeline: { type: String, required },
    requestId: { type: String, required },
    jobId: { type: String, required },
    epoch: { type: Number, required },
    eventId: String,
    verificationJobId: String,
    mediaCid: String,
    manifestCid: String,
    requester: String,
    details: Schema.Types.Mixed,
    attempts: { type: Number, required },
    replays: { type: Number, required },
    reason: { type: String, required },
    errorCode: { type: String, required },
    errorMessage: { type: String, required },
    retryable: { type: Boolean, required },
    workerId: { type: String, required },
    deadLetteredAt: { type: Date, required },
    replayedAt: { type: Date, default: null },
  },
  { collection: 'deadLetteredRequests' },
);
// Upsert and look-up of one record.
schema.index({ pipeline: 1, requestId: 1 }, { name: deadLetterIndex.request, unique: true });
// The list, newest first, paged by key.
schema.index({ replayedAt: 1, deadLetteredAt: -1, _id: -1 }, { name: deadLetterIndex.open });
// Counts of the open, without reading the records.
schema.index({ replayedAt: 1, pipeline: 1 }, { name: deadLetterIndex.openByPipeline });

export function deadLetterModel(connection: Connection): Model<DeadLetteredRequest> {
  return connection.model<DeadLetteredRequest>('DeadLetteredRequest', schema);
}
