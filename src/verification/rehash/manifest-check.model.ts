import { type Connection, type Model, Schema, type Types } from 'mongoose';
import type { QueueEnvelope } from '../../queue/envelope';
import { applyQueueEnvelope } from '../../queue/envelope-schema';

/** One look at the manifest of one job that still waits. */
export interface ManifestCheck {
  verificationJobId: Types.ObjectId;
  result: 'matches' | 'mismatched' | 'not_applicable' | 'unreachable' | null;
}

/** A finished check says nothing that the job doesn't. */
const DONE_RETENTION_MS = 86_400_000;

const schema = applyQueueEnvelope(
  new Schema<ManifestCheck & QueueEnvelope>(
    {
      verificationJobId: { type: Schema.Types.ObjectId, required: true },
      result: { type: String, default: null },
    },
    { collection: 'manifestChecks', autoIndex: false, versionKey: false },
  ),
  { doneRetentionMs: DONE_RETENTION_MS },
);

export function manifestCheckModel(connection: Connection): Model<ManifestCheck & QueueEnvelope> {
  return (
    connection.models['ManifestCheck'] ??
    connection.model<ManifestCheck & QueueEnvelope>('ManifestCheck', schema)
  );
}
