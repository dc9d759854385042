import type { Filter, MongoBulkWriteError, UpdateResult } from 'mongodb';
import { Long, ObjectId } from 'mongodb';
import type { Thing } from '../../support/embedded-fixture';
import { refusal, useEmbedded } from '../../support/embedded-fixture';

const embedded = useEmbedded();

/** For updates of arrays, whose types the driver would have to know. */
const change = (filter: Filter<Thing>, update: object): Promise<UpdateResult<Thing>> =>
  embedded.things.updateOne(filter, update);

describe('writes', () => {
  it('tell a duplicate key with its pattern and value', async () => {
    await embedded.things.createIndex({ a: 1, b: -1 }, { unique: true }, {});
    await embedded.things.insertOne({ _id: new ObjectId(), a: 'x', b: 2 });
    const expected = { code: 11000, keyPattern: { a: 1, b: -1 }, keyValue: { a: 'x', b: 2 } };
    const error = await refusal(embedded.things.insertOne({ _id: new ObjectId(), a: 'x', b: 2 }));
    expect(error).toMatchObject(expected);
    expect(error.message).toBe(
      `E11000 duplicate key error collection: ${embedded.things.namespace} index: a_1_b_-1 dup key: { a: "x", b: 2 }`,
    );
    await embedded.things.insertOne({ _id: new ObjectId(), a: 'y', b: 2 });
    await expect(refusal(embedded.things.updateOne({ a: 'y' }, { $set: { a: 'x' } }))).resolves.toMatchObject(
      expected,
    );
    await expect(
      refusal(embedded.things.findOneAndUpdate({ a: 'y' }, { $set: { a: 'x' } })),
    ).resolves.toMatchObject({
      ...expected,
      codeName: 'DuplicateKey',
    });
    expect(await embedded.things.countDocuments({ a: 'y' })).toBe(1);
  });

  it('go on after an error in an unordered bulk and stop in an ordered one', async () => {
    const operations = [1, 1, 2, 2, 3].map((_id) => ({ insertOne: { document: { _id } } }));
    const ordered = await embedded.things
      .bulkWrite(operations)
      .catch((error: unknown) => error as MongoBulkWriteError);
    expect(ordered).toMatchObject({ result: { insertedCount: 1 }, writeErrors: [{ index: 1, code: 11000 }] });
    const unordered = await embedded.things
      .bulkWrite(operations, { ordered: false })
      .catch((error: unknown) => error as MongoBulkWriteError);
    expect(unordered).toMatchObject({
      result: { insertedCount: 2 },
      writeErrors: [{ index: 0 }, { index: 1 }, { index: 3 }],
    });
  });

  it('match a partial unique index only where it holds, before and after a change', async () => {
    await embedded.things.createIndex(
      { key: 1 },
      { unique: true, partialFilterExpression: { phase: { $in: ['ready', 'leased'] } } },
      {},
    );
    await embedded.things.insertMany([
      { _id: 1, key: 'k', phase: 'done' },
      { _id: 2, key: 'k', phase: 'done' },
      { _id: 3, key: 'k', phase: 'ready' },
    ]);
    await expect(
      refusal(embedded.things.updateOne({ _id: 1 }, { $set: { phase: 'leased' } })),
    ).resolves.toMatchObject({ code: 11000 });
    await embedded.things.updateOne({ _id: 3 }, { $set: { phase: 'done' } });
    await embedded.things.updateOne({ _id: 1 }, { $set: { phase: 'leased' } });
    expect(await embedded.things.countDocuments({ phase: 'done' })).toBe(2);
  });

  it('upsert by the filter, the operators and the time of the server', async () => {
    const before = Date.now();
    await embedded.things.updateOne(
      { _id: 'a', kind: { $eq: 'k' } },
      { $setOnInsert: { made: 1 }, $inc: { n: 2 }, $currentDate: { at: true } },
      { upsert: true },
    );
    await embedded.things.updateOne(
      { _id: 'a' },
      { $setOnInsert: { made: 2 }, $inc: { n: 2 } },
      { upsert: true },
    );
    const { at, ...found } = (await embedded.things.findOne({ _id: 'a' })) as Thing;
    expect(found).toEqual({ _id: 'a', kind: 'k', made: 1, n: 4 });
    expect((at as Date).getTime()).toBeGreaterThanOrEqual(before - 1);
    const upserted = await embedded.things.findOneAndUpdate(
      { _id: 'b' },
      [{ $set: { until: { $add: ['$$NOW', 1000] }, now: '$$NOW' } }],
      { upsert: true, returnDocument: 'after' },
    );
    expect((upserted?.until as Date).getTime() - (upserted?.now as Date).getTime()).toBe(1000);
  });

  it('change nested fields and array elements alone', async () => {
    await embedded.things.insertOne({
      _id: 1,
      a: { b: { c: 1, d: [1, 2, 3] } },
      steps: [
        { id: 'x', n: 1 },
        { id: 'y', n: 2 },
      ],
    });
    await change(
      { _id: 1, 'steps.id': 'y' },
      {
        $set: { 'a.b.c': 2, 'steps.$.done': true },
        $push: { 'a.b.d': { $each: [0], $sort: 1, $slice: -3 } },
      },
    );
    await embedded.things.updateOne(
      { _id: 1 },
      { $set: { 'steps.$[s].late': true }, $unset: { 'a.b.c': 1 }, $inc: { 'steps.$[].n': 10 } },
      { arrayFilters: [{ 's.n': 1 }] },
    );
    expect(await embedded.things.findOne({ _id: 1 })).toEqual({
      _id: 1,
      a: { b: { d: [1, 2, 3] } },
      steps: [
        { id: 'x', n: 11, late: true },
        { id: 'y', n: 12, done: true },
      ],
    });
  });

  it.each([
    ['a filter operator that is none', 2, () => embedded.things.find({ a: { $nope: 1 } }).toArray()],
    ['$inc of a text', 14, () => embedded.things.updateOne({}, { $inc: { text: 1 } })],
    ['a change of _id', 66, () => embedded.things.updateOne({}, { $set: { _id: 2 } })],
    [
      'one path changed twice',
      40,
      () => embedded.things.updateOne({}, { $set: { b: 1 }, $inc: { 'b.c': 1 } }),
    ],
    ['a field inside a text', 28, () => embedded.things.updateOne({}, { $set: { 'text.inner': 1 } })],
    [
      'a push to a text',
      2,
      () =>
        embedded.db.command({
          findAndModify: embedded.things.collectionName,
          update: { $push: { text: 1 } },
        }),
    ],
    ['a modifier that is none', 9, () => embedded.things.updateOne({}, { $nope: { a: 1 } })],
    ['an expression that is none', 168, () => embedded.things.updateOne({}, [{ $set: { a: { $nope: 1 } } }])],
    ['a stage that is none', 40324, () => embedded.things.aggregate([{ $nope: {} }]).toArray()],
    ['a hint that names no index', 2, () => embedded.things.find({}).hint('nope').toArray()],
    ['a command that is none', 59, () => embedded.db.command({ nope: 1 })],
    [
      'a cursor that is none',
      43,
      () => embedded.db.command({ getMore: Long.fromNumber(5), collection: 'x' }),
    ],
    ['an index that is none', 27, () => embedded.things.dropIndex('nope')],
    [
      'a transaction',
      20,
      () =>
        embedded.db.command({
          find: 'x',
          txnNumber: Long.fromNumber(1),
          startTransaction: true,
          autocommit: false,
        }),
    ],
  ])('refuse %s with code %i', async (_what, code, act) => {
    await embedded.things.insertOne({ _id: 1, text: 'text' });
    await expect(refusal(act())).resolves.toMatchObject({ code });
    expect(await embedded.things.find().toArray()).toEqual([{ _id: 1, text: 'text' }]);
  });
});
