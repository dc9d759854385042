import { Schema } from 'mongoose';
import { ensureIndexes, verifyIndexes } from '../../../src/platform/database/indexes';
import { PermanentError } from '../../../src/platform/errors';
import { applyQueueEnvelope } from '../../../src/queue/envelope-schema';
import type { MongoWorkerQueue } from '../../../src/queue/mongo-worker-queue';
import { openTestDatabase, type TestDatabase } from '../../support/database';
import {
  claimant,
  mustClaim,
  parcelModel,
  parcelQueue,
  parcels,
  type Parcel,
} from '../../support/queue-fixture';

describe('enqueueing', () => {
  let database: TestDatabase;
  let queue: MongoWorkerQueue<Parcel>;
  beforeAll(async () => {
    database = await openTestDatabase();
    queue = await parcelQueue(database.connection);
  });
  afterEach(() => parcels(database.connection).deleteMany({}));
  afterAll(() => database.close());

  it('makes one document of 50 parallel calls with one key', async () => {
    const results = await Promise.all(
      Array.from({ length: 50 }, (_, i) => queue.enqueue({ key: 'same', payload: { label: `${i}` } })),
    );
    expect(new Set(results.map(({ job }) => job._id.toHexString())).size).toBe(1);
    expect(results.filter(({ kind }) => kind === 'enqueued')).toHaveLength(1);
    expect(await parcels(database.connection).countDocuments()).toBe(1);
  });

  it('leaves a job alone that is there already, whatever became of it', async () => {
    await queue.enqueue({ key: 'k', payload: { label: 'first' } });
    const { lease } = await mustClaim(queue);
    await queue.complete(lease, { note: 'finished' });
    const again = await queue.enqueue({ key: 'k', payload: { label: 'second' }, priority: 9, delayMs: 5000 });
    expect(again).toMatchObject({
      kind: 'already_there',
      job: { label: 'first', phase: 'done', priority: 0, note: 'finished' },
    });
  });

  it('takes many at once, known and repeated keys included, and answers in order', async () => {
    await queue.enqueue({ key: 'b', payload: { label: 'old b' } });
    const results = await queue.enqueueMany(
      ['a', 'b', 'c', 'a'].map((key) => ({ key, payload: { label: `new ${key}` } })),
    );
    expect(results.map(({ kind, job }) => [kind, job.label])).toEqual([
      ['enqueued', 'new a'],
      ['already_there', 'old b'],
      ['enqueued', 'new c'],
      ['already_there', 'new a'],
    ]);
    expect(await queue.enqueueMany([])).toEqual([]);
  });

  it('does not let a payload or a patch touch the envelope', async () => {
    const sneaky = { label: 'x', attempts: -100 } as Parcel;
    await expect(queue.enqueue({ key: 'x', payload: sneaky })).rejects.toThrow(PermanentError);
    await queue.enqueue({ key: 'x', payload: { label: 'x' } });
    const { lease } = await mustClaim(queue);
    await expect(queue.record(lease, { phase: 'done' } as Partial<Parcel>)).rejects.toMatchObject({
      code: 'ENVELOPE_FIELD',
    });
  });

  it('hides a delayed job until its time by the database clock', async () => {
    const { job } = await queue.enqueue({ key: 'soon', payload: { label: 'soon' }, delayMs: 150 });
    expect(job.phase).toBe('waiting');
    expect(job.dueAt.getTime() - job.enqueuedAt.getTime()).toBe(150);
    let claim = await queue.claim(claimant('w'));
    while (claim.kind === 'empty') claim = await queue.claim(claimant('w'));
    const claimedAtMs = claim.claimed.job.lease!.expiresAt.getTime() - queue.leaseMs;
    expect(claimedAtMs).toBeGreaterThanOrEqual(job.dueAt.getTime());
    expect(claimedAtMs).toBeLessThan(job.dueAt.getTime() + 1000);
  });
});

describe('the indexes of a queue', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase();
  });
  afterAll(() => database.close());

  it('are demanded at the start, by name', async () => {
    const queue = await parcelQueue(database.connection, 'Verified');
    await expect(queue.verify()).resolves.toBeUndefined();
    await parcels(database.connection, 'Verified').dropIndex('queue_leases');
    await expect(queue.verify()).rejects.toMatchObject({
      code: 'INDEX_MISSING',
      message: expect.stringContaining('queue_leases') as string,
    });
  });

  it('are refused where one has the name but not the form', async () => {
    const queue = await parcelQueue(database.connection, 'Disguised');
    const collection = parcels(database.connection, 'Disguised');
    await collection.dropIndex('queue_key');
    await collection.createIndex({ key: 1 }, { name: 'queue_key' }, {});
    await expect(queue.verify()).rejects.toMatchObject({ details: { indexes: ['queue_key'] } });
  });

  it('are missing from a collection that does not exist', async () => {
    await expect(verifyIndexes(parcelModel(database.connection, 'Nowhere'))).rejects.toMatchObject({
      code: 'INDEX_MISSING',
    });
  });

  it('expire what is done, never what is dead, and follow a changed retention', async () => {
    const model = (name: string, doneRetentionMs: number) =>
      database.connection.model(
        name,
        applyQueueEnvelope(new Schema({ label: String }, { collection: 'kept' }), { doneRetentionMs }),
      );
    await ensureIndexes(model('Kept1', 60_000));
    await ensureIndexes(model('Kept2', 3_600_000));
    const stored = await parcels(database.connection, 'Kept2').indexes();
    expect(stored.find(({ name }) => name === 'queue_done')).toMatchObject({
      key: { finishedAt: -1 },
      partialFilterExpression: { phase: 'done' },
      expireAfterSeconds: 3600,
    });
    expect(stored.find(({ name }) => name === 'queue_dead')?.expireAfterSeconds).toBeUndefined();
  });

  it('may change a retention from many processes that start at once', async () => {
    const model = (name: string, doneRetentionMs: number) =>
      database.connection.model(
        name,
        applyQueueEnvelope(new Schema({ label: String }, { collection: 'raced' }), { doneRetentionMs }),
      );
    await ensureIndexes(model('Raced0', 60_000));
    const starting = Array.from({ length: 6 }, (_, index) => model(`Raced${index + 1}`, 120_000));
    await Promise.all(starting.map((each) => ensureIndexes(each)));
    const stored = await parcels(database.connection, 'Raced0').indexes();
    expect(stored.find(({ name }) => name === 'queue_done')).toMatchObject({ expireAfterSeconds: 120 });
  });
});
