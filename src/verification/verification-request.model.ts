import { type Connection, type Model, Schema, type Types } from 'mongoose';
import type { QueueEnvelope } from '../queue/envelope';
import { applyQueueEnvelope } from '../queue/envelope-schema';
import type { TransactionHash } from '../stellar/submission';
import type { Attestation } from './attestation';
import type { Rejection } from './spv/verdict';

/**
 * The queue's payload: what was asked for, and what each step has made of it so far. A product that is here is final
 * for this request: no step computes it again.
 */
export interface VerificationRequest {
  /** Identity of the request, unique; also the queue's idempotency key. */
  eventId: string;
  manifestCid: string;
  mediaCid: string;
  /** G… strkey. */
  requester: string;
  /** What the requester says the manifest's canonical hash is (64 hex digits). */
  expectedCanonicalManifestHash: string | null;
  /** The user's view of this request. Another one after a replay, for a failed job stays failed. */
  verificationJobId: Types.ObjectId;

  /**
   * SPV step, stored together; `manifestHash` set means it has been done. Hex SHA-256 of: the media's bytes, the
   * manifest's bytes, the manifest's canonical JSON.
   */
  contentHash: string | null;
  manifestHash: string | null;
  canonicalManifestHash: string | null;

  attestation: Attestation | null;

  /** The mint that may be on its way; written before it is sent. */
  transactionHash: TransactionHash | null;
  /** Decimal u64. */
  certificateId: string | null;

  /** The answer "no"; set before anything else tells of it. */
  rejection: Rejection | null;
  outcome: 'minted' | 'rejected' | null;
}

export type StoredVerificationRequest = VerificationRequest & QueueEnvelope;

export interface VerificationRequestInput {
  eventId: string;
  manifestCid: string;
  mediaCid: string;
  requester: string;
  expectedCanonicalManifestHash: string | null;
  verificationJobId: Types.ObjectId;
}

export function newVerificationRequest(input: VerificationRequestInput): VerificationRequest {
  return {
    ...input,
    contentHash: null,
    manifestHash: null,
    canonicalManifestHash: null,
    attestation: null,
    transactionHash: null,
    certificateId: null,
    rejection: null,
    outcome: null,
  };
}

const nullable = { type: String, default: null } as const;

const attestationSchema = new Schema<Attestation>(
  {
    attestationHash: { type: String, required: true },
    signature: { type: String, required: true },
    codeMeasurementHash: { type: String, required: true },
  },
  { _id: false },
);

const rejectionSchema = new Schema<Rejection>(
  { code: { type: String, required: true }, message: { type: String, required: true } },
  { _id: false },
);

const schema = applyQueueEnvelope(
  new Schema<StoredVerificationRequest>(
    {
      eventId: { type: String, required: true },
      manifestCid: { type: String, required: true },
      mediaCid: { type: String, required: true },
      requester: { type: String, required: true },
      expectedCanonicalManifestHash: nullable,
      verificationJobId: { type: Schema.Types.ObjectId, required: true },
      contentHash: nullable,
      manifestHash: nullable,
      canonicalManifestHash: nullable,
      attestation: { type: attestationSchema, default: null },
      transactionHash: nullable,
      certificateId: nullable,
      rejection: { type: rejectionSchema, default: null },
      outcome: nullable,
    },
    { collection: 'verificationRequestEvents', autoIndex: false, versionKey: false },
  ),
);

export function verificationRequestModel(connection: Connection): Model<StoredVerificationRequest> {
  return (
    connection.models['VerificationRequestEvent'] ??
    connection.model<StoredVerificationRequest>('VerificationRequestEvent', schema)
  );
}
