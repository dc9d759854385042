import mongoose, { Schema } from 'mongoose';
import type { Connection } from 'mongoose';
import type { EmbeddedServer } from '../../../src/embedded';
import { startEmbeddedServer } from '../../../src/embedded';

let server: EmbeddedServer;
let connection: Connection;

beforeAll(async () => {
  server = await startEmbeddedServer();
  connection = await mongoose.createConnection(server.uri, { dbName: 'mongoose' }).asPromise();
});

afterAll(async () => {
  await connection.close();
  await server.close();
});

interface Job {
  key: string;
  phase: string;
  order: number;
  attempts: number;
  tags: string[];
  lease?: { token: string; expiresAt: Date };
}

function jobSchema(): Schema<Job> {
  const schema = new Schema<Job>(
    {
      key: { type: String, required: true, unique: true },
      phase: { type: String, default: 'ready' },
      order: { type: Number, required: true },
      attempts: { type: Number, default: 0 },
      tags: [String],
      lease: { token: String, expiresAt: Date },
    },
    { timestamps: true, optimisticConcurrency: true },
  );
  schema.index({ order: 1, _id: 1 }, { name: 'claim', partialFilterExpression: { phase: 'ready' } });
  return schema;
}

describe('mongoose', () => {
  it('makes indexes, keeps versions and timestamps, and finds what it saved', async () => {
    const Jobs = connection.model('Saved', jobSchema());
    await Jobs.init();
    expect((await Jobs.collection.indexes()).map(({ name }) => name)).toEqual(['_id_', 'key_1', 'claim']);
    expect(await Jobs.syncIndexes()).toEqual([]);
    const job = await Jobs.create({ key: 'a', order: 1, tags: ['x'] });
    job.tags.push('y');
    await job.save();
    const stale = await Jobs.findById(job._id).orFail();
    await Jobs.updateOne({ _id: job._id }, { $inc: { __v: 1 } });
    stale.attempts = 5;
    await expect(stale.save()).rejects.toMatchObject({ name: 'VersionError' });
    await expect(Jobs.create({ key: 'a', order: 2 })).rejects.toMatchObject({
      code: 11000,
      keyValue: { key: 'a' },
    });
    const found = await Jobs.findOne({ key: 'a' }).lean();
    expect(found).toMatchObject({ phase: 'ready', tags: ['x', 'y'], attempts: 0 });
  });

  it('claims by a pipeline under concurrency, each document once, by the clock of the server', async () => {
    const Jobs = connection.model('Claimed', jobSchema());
    await Jobs.init();
    await Jobs.insertMany(Array.from({ length: 60 }, (_, i) => ({ key: `k${i}`, order: 60 - i })));
    const claimed: number[] = [];
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        for (;;) {
          const job = await Jobs.findOneAndUpdate(
            { phase: 'ready', $expr: { $lte: ['$createdAt', '$$NOW'] } },
            [
              {
                $set: {
                  phase: 'leased',
                  attempts: { $add: ['$attempts', 1] },
                  lease: { token: 't', expiresAt: { $add: ['$$NOW', 30_000] } },
                },
              },
            ],
            { sort: { order: 1, _id: 1 }, returnDocument: 'after', updatePipeline: true },
          ).lean();
          if (!job) return;
          claimed.push(job.order);
        }
      }),
    );
    expect(claimed.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 60 }, (_, i) => i + 1));
    expect(claimed.slice(0, 5).every((order) => order <= 13)).toBe(true);
    expect(
      await Jobs.countDocuments({ phase: 'leased', attempts: 1, 'lease.expiresAt': { $gt: new Date() } }),
    ).toBe(60);
  });

  it('upserts one document when many ask for it at once', async () => {
    const Jobs = connection.model('Upserted', jobSchema());
    await Jobs.init();
    const results = await Promise.all(
      Array.from({ length: 16 }, () =>
        Jobs.updateOne(
          { key: 'one' },
          { $setOnInsert: { order: 1 }, $inc: { attempts: 1 } },
          { upsert: true },
        ),
      ),
    );
    expect(results.filter(({ upsertedCount }) => upsertedCount === 1)).toHaveLength(1);
    expect(await Jobs.findOne({}).lean()).toMatchObject({ key: 'one', attempts: 16 });
  });

  it('writes in bulk, iterates and aggregates', async () => {
    const Jobs = connection.model('Bulk', jobSchema());
    await Jobs.bulkWrite([
      { insertOne: { document: { key: 'a', order: 1, phase: 'ready', attempts: 0, tags: [] } } },
      { updateOne: { filter: { key: 'b' }, update: { $set: { order: 2 } }, upsert: true } },
      { updateMany: { filter: {}, update: { $set: { phase: 'done' } } } },
      { deleteOne: { filter: { key: 'a' } } },
    ]);
    const keys: string[] = [];
    for await (const { key } of Jobs.find().cursor()) keys.push(key);
    expect(keys).toEqual(['b']);
    const counts = await Jobs.aggregate<{ _id: string; n: number }>([
      { $group: { _id: '$phase', n: { $sum: 1 } } },
    ]);
    expect(counts).toEqual([{ _id: 'done', n: 1 }]);
  });
});
