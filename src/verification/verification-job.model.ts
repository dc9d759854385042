import { type Connection, type Model, Schema, type Types } from 'mongoose';
import type { TimelineEntry } from '../lifecycle/lifecycle-service';
import { type VerificationJobState, verificationJobStates } from './verification-job.lifecycle';

export type JobActor = 'worker' | 'oracle' | 'user';

/** What a user sees of a request on its way to a certificate. Every hash is hex. */
export interface VerificationJob {
  _id: Types.ObjectId;
  /** The request in the queue, and which replay of it: one job for each pair. */
  requestId: string;
  generation: number;
  manifestId?: string;
  assetId?: string;
  /** G… strkey. */
  ownerPublicKey: string;
  contentHash: string | null;
  /** SHA-256 of the manifest's raw bytes. */
  manifestHash: string | null;
  canonicalManifestHash: string | null;
  status: VerificationJobState;
  timeline: TimelineEntry[];
  teeAttestationHash?: string;
  teeSignature?: string;
  codeMeasurementHash?: string;
  /** The mint. */
  stellarTransactionHash?: string;
  attestationTransactionHash?: string;
  /** Decimal u64. */
  certificateId?: string;
  errorMessage?: string;
  errorCode?: string;
  webhookUrl?: string;
  webhookEvents?: string[];
  /** Epoch of the claim that wrote last: an older one is refused. */
  epoch: number;
  createdAt: Date;
  updatedAt: Date;
}

const timelineSchema = new Schema<TimelineEntry>(
  {
    stage: { type: String, enum: verificationJobStates, required: true },
    from: { type: String, enum: verificationJobStates, required: true },
    at: { type: Date, required: true },
    actor: { type: String, enum: ['worker', 'oracle', 'user'], required: true },
    epoch: { type: Number, required: true },
    reason: String,
    txHash: String,
  },
  { _id: false },
);

const schema = new Schema<VerificationJob>(
  {
    requestId: { type: String, required: true },
    generation: { type: Number, required: true },
    manifestId: String,
    assetId: String,
    ownerPublicKey: { type: String, required: true },
    contentHash: { type: String, default: null },
    manifestHash: { type: String, default: null },
    canonicalManifestHash: { type: String, default: null },
    status: { type: String, enum: verificationJobStates, required: true },
    timeline: { type: [timelineSchema], required: true },
    teeAttestationHash: String,
    teeSignature: String,
    codeMeasurementHash: String,
    stellarTransactionHash: String,
    attestationTransactionHash: String,
    certificateId: String,
    errorMessage: String,
    errorCode: String,
    webhookUrl: String,
    webhookEvents: { type: [String], default: undefined },
    epoch: { type: Number, required: true },
    createdAt: { type: Date, required: true },
    updatedAt: { type: Date, required: true },
  },
  { collection: 'verificationJobs', autoIndex: false, versionKey: false },
);

/** One job for one request and replay, however many processes create it at once. */
schema.index({ requestId: 1, generation: 1 }, { name: 'job_of_request', unique: true });
/** Serves the list by owner, newest first. */
schema.index({ ownerPublicKey: 1, createdAt: -1, _id: -1 }, { name: 'jobs_of_owner' });
/** Serves the match of a mint event to its job. */
schema.index({ manifestHash: 1, ownerPublicKey: 1 }, { name: 'jobs_of_manifest' });
/** Serves the search by media. */
schema.index({ contentHash: 1 }, { name: 'jobs_of_content' });
/** Serves the scan for manifests to re-hash, and the figures by status. */
schema.index({ status: 1, _id: 1 }, { name: 'jobs_by_status' });

export function verificationJobModel(connection: Connection): Model<VerificationJob> {
  return connection.models['VerificationJob'] ?? connection.model<VerificationJob>('VerificationJob', schema);
}
