import type { Thing } from '../../support/embedded-fixture';
import { range, refusal, useEmbedded } from '../../support/embedded-fixture';

const embedded = useEmbedded();

describe('cursors', () => {
  it('hand out a whole result while documents come and go', async () => {
    await embedded.things.insertMany(range(1000, (_id) => ({ _id, n: _id % 7 })));
    await embedded.things.createIndex({ n: 1 });
    const seen: Thing['_id'][] = [];
    for await (const { _id } of embedded.things
      .find({ n: { $gte: 0 } })
      .sort({ n: 1, _id: 1 })
      .batchSize(50)) {
      seen.push(_id);
      if (seen.length % 100 === 0) await embedded.things.deleteOne({ _id: seen.at(-1) });
    }
    expect(new Set(seen).size).toBe(1000);
    const scanned: unknown[] = [];
    for await (const { _id } of embedded.things.find({}).batchSize(50)) {
      scanned.push(_id);
      if (scanned.length % 90 === 0) await embedded.things.deleteMany({ _id: { $lt: Number(_id) - 50 } });
    }
    expect(scanned).toHaveLength(990);
  });

  it('end in time with maxTimeMS, which later batches do not share', async () => {
    await embedded.things.insertMany(range(2000, (i) => ({ _id: i, i })));
    const pipeline = [{ $match: { $expr: { $gt: ['$i', '$$i'] } } }, { $limit: 1 }];
    const slow = [
      { $lookup: { from: embedded.things.collectionName, let: { i: '$i' }, pipeline, as: 'x' } },
      { $count: 'n' },
    ];
    await expect(
      refusal(embedded.things.aggregate(slow, { maxTimeMS: 20 }).toArray()),
    ).resolves.toMatchObject({
      code: 50,
    });
  });
});

describe('fail points', () => {
  it('make commands fail, so many times, by a code or by a broken connection', async () => {
    const admin = embedded.client.db('admin');
    await embedded.things.insertOne({ _id: 1 });
    const fail = (data: object): Promise<unknown> =>
      admin.command({
        configureFailPoint: 'failCommand',
        mode: { times: 1 },
        data: { failCommands: ['insert'], ...data },
      });
    await fail({ errorCode: 10107 });
    await expect(refusal(embedded.things.insertOne({ _id: 2 }))).resolves.toMatchObject({ code: 10107 });
    await fail({ closeConnection: true });
    await expect(embedded.things.insertOne({ _id: 2 })).rejects.toMatchObject({ name: 'MongoNetworkError' });
    await fail({ blockConnection: true, blockTimeMS: 50 });
    const startedAt = performance.now();
    await embedded.things.insertOne({ _id: 2 });
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(49);
    expect(await embedded.things.countDocuments()).toBe(2);
  });
});

describe('aggregation', () => {
  it('groups, joins, unwinds and writes', async () => {
    await embedded.things.insertMany(
      range(20, (i) => ({ _id: i, kind: `k${i % 3}`, list: [i, i + 1], parent: i - 1 })),
    );
    const run = (...pipeline: object[]): Promise<unknown[]> => embedded.things.aggregate(pipeline).toArray();
    await expect(
      run({ $group: { _id: '$kind', n: { $sum: 1 }, first: { $min: '$_id' } } }, { $sort: { _id: 1 } }),
    ).resolves.toEqual([
      { _id: 'k0', n: 7, first: 0 },
      { _id: 'k1', n: 7, first: 1 },
      { _id: 'k2', n: 6, first: 2 },
    ]);
    await expect(
      run(
        { $match: { _id: 1 } },
        {
          $lookup: {
            from: embedded.things.collectionName,
            localField: 'parent',
            foreignField: '_id',
            as: 'up',
          },
        },
        { $unwind: '$up' },
        { $project: { _id: 0, up: '$up._id' } },
      ),
    ).resolves.toEqual([{ up: 0 }]);
    await expect(
      run({ $unwind: '$list' }, { $sortByCount: '$list' }, { $match: { count: 2 } }, { $count: 'n' }),
    ).resolves.toEqual([{ n: 19 }]);
    await expect(
      run({
        $bucket: { groupBy: '$_id', boundaries: [0, 5, 12], default: 'more', output: { n: { $sum: 1 } } },
      }),
    ).resolves.toEqual([
      { _id: 0, n: 5 },
      { _id: 5, n: 7 },
      { _id: 'more', n: 8 },
    ]);
    const target = embedded.db.collection<Thing>(`${embedded.things.collectionName}_out`);
    await run({ $match: { kind: 'k0' } }, { $out: target.collectionName });
    await run({ $match: { kind: 'k1' } }, { $set: { merged: true } }, { $merge: target.collectionName });
    expect([await target.countDocuments(), await target.countDocuments({ merged: true })]).toEqual([14, 7]);
  });

  it('answers counts by group from an index, null for what is missing', async () => {
    await embedded.things.createIndex({ state: 1, n: 1 });
    await embedded.things.insertMany([
      ...range(30, (n) => ({ _id: n, state: `s${n % 3}`, n })),
      { _id: 30, n: 1 },
      { _id: 31, state: null },
    ]);
    const pipeline = [{ $group: { _id: '$state', n: { $sum: 1 } } }, { $sort: { _id: 1 } }];
    await expect(embedded.things.aggregate(pipeline).toArray()).resolves.toEqual([
      { _id: null, n: 2 },
      { _id: 's0', n: 10 },
      { _id: 's1', n: 10 },
      { _id: 's2', n: 10 },
    ]);
    expect(await embedded.things.distinct('state')).toEqual([null, 's0', 's1', 's2']);
    expect(await embedded.things.distinct('n', { state: 's1' })).toHaveLength(10);
  });
});
