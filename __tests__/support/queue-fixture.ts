import { Schema, Types, type Connection, type mongo } from 'mongoose';
import { ensureIndexes, type IndexedModel } from '../../src/platform/database/indexes';
import { nativeCollection } from '../../src/platform/database/native-collection';
import type { WorkerId } from '../../src/platform/ids';
import type { QueueEnvelope } from '../../src/queue/envelope';
import { applyQueueEnvelope, type EnvelopeSchemaOptions } from '../../src/queue/envelope-schema';
import { MongoWorkerQueue, type MongoWorkerQueueOptions } from '../../src/queue/mongo-worker-queue';
import type { ClaimedJob, Claimant, WorkerQueue } from '../../src/queue/worker-queue';

export interface Parcel {
  label: string;
  weight?: number;
  note?: unknown;
}

export function parcelModel(
  connection: Connection,
  name = 'Parcel',
  options: EnvelopeSchemaOptions = {},
): IndexedModel {
  const schema = new Schema({
    label: { type: String, required: true },
    weight: Number,
    note: Schema.Types.Mixed,
  });
  return connection.model(name, applyQueueEnvelope(schema, options));
}

export async function parcelQueue(
  connection: Connection,
  name = 'Parcel',
  options: Partial<MongoWorkerQueueOptions> = {},
): Promise<MongoWorkerQueue<Parcel>> {
  const model = connection.models[name] ?? parcelModel(connection, name);
  await ensureIndexes(model);
  return new MongoWorkerQueue<Parcel>({ model, leaseMs: 60_000, maxAttempts: 3, ...options });
}

export const claimant = (name: string, lane = 0): Claimant => ({ workerId: name as WorkerId, lane });

export async function mustClaim<Payload>(
  queue: WorkerQueue<Payload>,
  who = claimant('w1'),
): Promise<ClaimedJob<Payload>> {
  const result = await queue.claim(who);
  if (result.kind === 'empty') throw new Error('nothing to claim');
  return result.claimed;
}

/** The stored documents themselves, for looking and for meddling. */
export function parcels(connection: Connection, name = 'Parcel'): mongo.Collection<QueueEnvelope & Parcel> {
  return nativeCollection<QueueEnvelope & Parcel>(connection.models[name]!);
}

/** As if the lease's whole time had passed without a renewal. */
export async function expireLease(connection: Connection, jobId: string, name = 'Parcel'): Promise<void> {
  const { matchedCount } = await parcels(connection, name).updateOne(
    { _id: new Types.ObjectId(jobId), phase: 'leased' },
    { $set: { 'lease.expiresAt': new Date(0) } },
  );
  if (matchedCount !== 1) throw new Error('no such lease');
}

/** As if the lease had run out and someone else had claimed the job, in one write that no renewal can get in between. */
export async function stealLease(connection: Connection, jobId: string, name = 'Parcel'): Promise<void> {
  const { matchedCount } = await parcels(connection, name).updateOne(
    { _id: new Types.ObjectId(jobId), phase: 'leased' },
    {
      $set: {
        lease: { token: 'stolen', workerId: 'thief', lane: 0, expiresAt: new Date(Date.now() + 3_600_000) },
      } as mongo.MatchKeysAndValues<QueueEnvelope & Parcel>,
      $inc: { attempts: 1, epoch: 1 },
    },
  );
  if (matchedCount !== 1) throw new Error('no such lease');
}
