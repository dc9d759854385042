import { Schema, type Schema as SchemaType } from 'mongoose';
import { PermanentError } from '../platform/errors';

/** Names of the queue's indexes. Each query hints its own, so that a plan can't change behind our back. */
export const queueIndex = {
  key: 'queue_key',
  ready: 'queue_ready',
  waiting: 'queue_waiting',
  leases: 'queue_leases',
  unprojected: 'queue_unprojected',
  dead: 'queue_dead',
  done: 'queue_done',
} as const;

/** The two that `findOneAndUpdate` names: it takes a hint by key only. */
export const keyIndex = { key: 1 } as const;
export const readyIndex = { order: 1, _id: 1 } as const;

const required = true;

const leaseSchema = new Schema(
  {
    token: { type: String, required },
    workerId: { type: String, required },
    lane: { type: Number, required },
    expiresAt: { type: Date, required },
  },
  { _id: false },
);

const settledSchema = new Schema(
  { token: { type: String, required }, as: { type: String, required } },
  { _id: false },
);

const errorSchema = new Schema(
  {
    code: { type: String, required },
    message: { type: String, required },
    attempt: { type: Number, required },
    at: { type: Date, required },
    retryable: { type: Boolean, required },
    workerId: { type: String, required },
  },
  { _id: false },
);

/** The envelope, as mongoose reads it. The queue writes it natively. */
export const queueEnvelopeSchemaFields = {
  key: { type: String, required },
  phase: { type: String, enum: ['ready', 'waiting', 'leased', 'done', 'dead'], required },
  order: { type: Number, required },
  priority: { type: Number, required },
  dueAt: { type: Date, required },
  attempts: { type: Number, required },
  maxAttempts: { type: Number, required },
  epoch: { type: Number, required },
  lease: { type: leaseSchema, default: null },
  settled: { type: settledSchema, default: null },
  errors: { type: [errorSchema], required },
  enqueuedAt: { type: Date, required },
  finishedAt: { type: Date, default: null },
  deadLetterPending: { type: Boolean, required },
  replays: { type: Number, required },
} as const;

export interface EnvelopeSchemaOptions {
  /** Completed jobs are removed so long after they finished; kept for good when absent. Dead ones always stay. */
  doneRetentionMs?: number;
}

/** Makes a queue of the schema's collection: adds the envelope's fields and the indexes its queries name. */
export function applyQueueEnvelope<S extends SchemaType>(
  schema: S,
  { doneRetentionMs }: EnvelopeSchemaOptions = {},
): S {
  schema.set('suppressReservedKeysWarning', true);
  schema.add(queueEnvelopeSchemaFields);

  // Enqueue: one document for one key.
  schema.index(keyIndex, { name: queueIndex.key, unique: true });
  // Claim: the head of what is ready. Partial, so neither history nor back-off nor running work makes it longer.
  schema.index(readyIndex, { name: queueIndex.ready, partialFilterExpression: { phase: 'ready' } });
  // Stager: what waits and is due.
  schema.index({ dueAt: 1 }, { name: queueIndex.waiting, partialFilterExpression: { phase: 'waiting' } });
  // Sweeper: leases that ran out. Also reads back a claim whose reply was lost.
  schema.index(
    { 'lease.expiresAt': 1 },
    { name: queueIndex.leases, partialFilterExpression: { phase: 'leased' } },
  );
  // Projector: jobs whose dead-letter record is behind.
  schema.index(
    { deadLetterPending: 1, _id: 1 },
    { name: queueIndex.unprojected, partialFilterExpression: { deadLetterPending: true } },
  );
  // Counts of the dead.
  schema.index({ finishedAt: 1 }, { name: queueIndex.dead, partialFilterExpression: { phase: 'dead' } });
  // Retention and counts of the done. The descending key tells it apart from the one before, which has the same field.
  schema.index(
    { finishedAt: -1 },
    {
      name: queueIndex.done,
      partialFilterExpression: { phase: 'done' },
      ...(doneRetentionMs === undefined ? {} : { expireAfterSeconds: Math.ceil(doneRetentionMs / 1000) }),
    },
  );
  return schema;
}

/** The envelope belongs to the queue; a patch that names one of its fields is a mistake of the caller's program. @throws PermanentError ENVELOPE_FIELD */
export function assertPayloadOnly(patch: object): void {
  const foreign = Object.keys(patch).filter(
    (name) => name === '_id' || Object.hasOwn(queueEnvelopeSchemaFields, name),
  );
  if (foreign.length > 0) {
    throw new PermanentError('ENVELOPE_FIELD', `the queue alone writes ${foreign.join(', ')}`);
  }
}
