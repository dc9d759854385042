import { Binary, Decimal128, Double, Int32, Long, MongoClient, ObjectId } from 'mongodb';
import type { Collection, Db, Document, Filter, MongoBulkWriteError, UpdateResult } from 'mongodb';
import type { EmbeddedServer } from '../../../src/embedded';
import { startEmbeddedServer } from '../../../src/embedded';

/** Documents of any shape, with ids of any type. */
interface Thing extends Document {
  _id: number | string | Date | Binary | ObjectId;
}

interface PlanStage {
  stage: string;
  indexName?: string;
  inputStage?: PlanStage;
}

interface Explained {
  queryPlanner: { winningPlan: PlanStage };
  executionStats: { totalKeysExamined: number; totalDocsExamined: number };
}

let server: EmbeddedServer;
let client: MongoClient;
let db: Db;
let things: Collection<Thing>;
let lastCollection = 0;

beforeAll(async () => {
  server = await startEmbeddedServer();
  client = await new MongoClient(server.uri).connect();
  db = client.db('commands');
});

afterAll(async () => {
  await client.close();
  await server.close();
});

beforeEach(() => {
  things = db.collection<Thing>(`things${lastCollection++}`);
});

const range = <T>(count: number, make: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i));

/** For updates of arrays, whose types the driver would have to know. */
const change = (filter: Filter<Thing>, update: object): Promise<UpdateResult<Thing>> =>
  things.updateOne(filter, update);

async function refusal(promise: Promise<unknown>): Promise<{ code: number; [field: string]: unknown }> {
  return promise.then(
    () => Promise.reject(new Error('it was accepted')),
    (error: unknown) => error as { code: number },
  );
}

/** The names of the types of a document's fields, as they came over the wire. */
async function typesOf(filter: object): Promise<Record<string, string>> {
  const found = await things.findOne(filter, { promoteValues: false });
  const entries = Object.entries(found ?? {}).filter(([name]) => name !== '_id');
  return Object.fromEntries(
    entries.map(([name, value]) => [name, (value as { _bsontype?: string })._bsontype ?? typeof value]),
  );
}

describe('types', () => {
  it('stay what they are through updates of other fields and of their own', async () => {
    await things.insertOne({
      _id: 1,
      int: new Int32(1),
      long: Long.fromNumber(1),
      double: new Double(1),
      decimal: Decimal128.fromString('1.10'),
      list: [Long.fromNumber(5), new Double(6)],
    });
    await things.updateOne(
      { _id: 1 },
      { $inc: { int: 1, long: 1, double: 1, decimal: 1 }, $set: { text: 'x' } },
    );
    await things.updateOne({ _id: 1 }, [
      { $set: { sum: { $add: ['$int', '$long'] }, mean: { $avg: ['$int', '$long'] } } },
    ]);
    await expect(typesOf({ _id: 1 })).resolves.toMatchObject({
      int: 'Int32',
      long: 'Long',
      double: 'Double',
      decimal: 'Decimal128',
      sum: 'Long',
      mean: 'Double',
    });
    const found = await things.findOne({ _id: 1 }, { promoteValues: false, promoteLongs: false });
    expect(String(found?.decimal)).toBe('2.10');
    expect((found?.list as { _bsontype: string }[]).map(({ _bsontype }) => _bsontype)).toEqual([
      'Long',
      'Double',
    ]);
  });

  it('widen an int32 that overflows and refuse an int64 that does', async () => {
    await things.insertOne({ _id: 1, int: new Int32(2 ** 31 - 1), long: Long.MAX_VALUE });
    await things.updateOne({ _id: 1 }, { $inc: { int: 1 } });
    await expect(typesOf({ _id: 1 })).resolves.toMatchObject({ int: 'Long' });
    await expect(refusal(things.updateOne({ _id: 1 }, { $inc: { long: 1 } }))).resolves.toMatchObject({
      code: 2,
    });
  });

  it('compare by value across numeric types, with and without an index', async () => {
    await things.insertMany([
      { _id: 1, n: new Int32(5) },
      { _id: 2, n: Long.fromNumber(5) },
      { _id: 3, n: new Double(5) },
      { _id: 4, n: Decimal128.fromString('5.0') },
      { _id: 5, n: '5' },
    ]);
    expect(await things.countDocuments({ n: 5 })).toBe(4);
    await things.createIndex({ n: 1 });
    expect(await things.countDocuments({ n: Long.fromNumber(5) })).toBe(4);
    expect((await things.find({ n: { $gte: 4.5 } }).toArray()).length).toBe(4);
    const [group] = await things
      .aggregate([{ $match: { n: 5 } }, { $group: { _id: '$n', n: { $sum: 1 } } }])
      .toArray();
    expect(group).toMatchObject({ n: 4 });
  });

  it('include bytes, ids and dates as keys', async () => {
    const id = new ObjectId();
    await things.insertMany([{ _id: id }, { _id: new Binary(Buffer.from('key')) }, { _id: new Date(5) }]);
    await db.command({ insert: things.collectionName, documents: [{ _id: { a: 1, b: [2] } }] });
    for (const _id of [id, new Binary(Buffer.from('key')), new Date(5)]) {
      expect(await things.countDocuments({ _id })).toBe(1);
    }
    const count = async (_id: object): Promise<unknown> =>
      (await db.command({ count: things.collectionName, query: { _id } })).n;
    await expect(count({ a: 1, b: [2] })).resolves.toBe(1);
    await expect(count({ b: [2], a: 1 })).resolves.toBe(0);
  });
});

describe('writes', () => {
  it('tell a duplicate key with its pattern and value', async () => {
    await things.createIndex({ a: 1, b: -1 }, { unique: true }, {});
    await things.insertOne({ _id: new ObjectId(), a: 'x', b: 2 });
    const expected = { code: 11000, keyPattern: { a: 1, b: -1 }, keyValue: { a: 'x', b: 2 } };
    const error = await refusal(things.insertOne({ _id: new ObjectId(), a: 'x', b: 2 }));
    expect(error).toMatchObject(expected);
    expect(error.message).toBe(
      `E11000 duplicate key error collection: ${things.namespace} index: a_1_b_-1 dup key: { a: "x", b: 2 }`,
    );
    await things.insertOne({ _id: new ObjectId(), a: 'y', b: 2 });
    await expect(refusal(things.updateOne({ a: 'y' }, { $set: { a: 'x' } }))).resolves.toMatchObject(
      expected,
    );
    await expect(refusal(things.findOneAndUpdate({ a: 'y' }, { $set: { a: 'x' } }))).resolves.toMatchObject({
      ...expected,
      codeName: 'DuplicateKey',
    });
    expect(await things.countDocuments({ a: 'y' })).toBe(1);
  });

  it('go on after an error in an unordered bulk and stop in an ordered one', async () => {
    const operations = [1, 1, 2, 2, 3].map((_id) => ({ insertOne: { document: { _id } } }));
    const ordered = await things
      .bulkWrite(operations)
      .catch((error: unknown) => error as MongoBulkWriteError);
    expect(ordered).toMatchObject({ result: { insertedCount: 1 }, writeErrors: [{ index: 1, code: 11000 }] });
    const unordered = await things
      .bulkWrite(operations, { ordered: false })
      .catch((error: unknown) => error as MongoBulkWriteError);
    expect(unordered).toMatchObject({
      result: { insertedCount: 2 },
      writeErrors: [{ index: 0 }, { index: 1 }, { index: 3 }],
    });
  });

  it('match a partial unique index only where it holds, before and after a change', async () => {
    await things.createIndex(
      { key: 1 },
      { unique: true, partialFilterExpression: { phase: { $in: ['ready', 'leased'] } } },
      {},
    );
    await things.insertMany([
      { _id: 1, key: 'k', phase: 'done' },
      { _id: 2, key: 'k', phase: 'done' },
      { _id: 3, key: 'k', phase: 'ready' },
    ]);
    await expect(refusal(things.updateOne({ _id: 1 }, { $set: { phase: 'leased' } }))).resolves.toMatchObject(
      { code: 11000 },
    );
    await things.updateOne({ _id: 3 }, { $set: { phase: 'done' } });
    await things.updateOne({ _id: 1 }, { $set: { phase: 'leased' } });
    expect(await things.countDocuments({ phase: 'done' })).toBe(2);
  });

  it('upsert by the filter, the operators and the time of the server', async () => {
    const before = Date.now();
    await things.updateOne(
      { _id: 'a', kind: { $eq: 'k' } },
      { $setOnInsert: { made: 1 }, $inc: { n: 2 }, $currentDate: { at: true } },
      { upsert: true },
    );
    await things.updateOne({ _id: 'a' }, { $setOnInsert: { made: 2 }, $inc: { n: 2 } }, { upsert: true });
    const { at, ...found } = (await things.findOne({ _id: 'a' })) as Thing;
    expect(found).toEqual({ _id: 'a', kind: 'k', made: 1, n: 4 });
    expect((at as Date).getTime()).toBeGreaterThanOrEqual(before - 1);
    const upserted = await things.findOneAndUpdate(
      { _id: 'b' },
      [{ $set: { until: { $add: ['$$NOW', 1000] }, now: '$$NOW' } }],
      { upsert: true, returnDocument: 'after' },
    );
    expect((upserted?.until as Date).getTime() - (upserted?.now as Date).getTime()).toBe(1000);
  });

  it('change nested fields and array elements alone', async () => {
    await things.insertOne({
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
    await things.updateOne(
      { _id: 1 },
      { $set: { 'steps.$[s].late': true }, $unset: { 'a.b.c': 1 }, $inc: { 'steps.$[].n': 10 } },
      { arrayFilters: [{ 's.n': 1 }] },
    );
    expect(await things.findOne({ _id: 1 })).toEqual({
      _id: 1,
      a: { b: { d: [1, 2, 3] } },
      steps: [
        { id: 'x', n: 11, late: true },
        { id: 'y', n: 12, done: true },
      ],
    });
  });

  it.each([
    ['a filter operator that is none', 2, () => things.find({ a: { $nope: 1 } }).toArray()],
    ['$inc of a text', 14, () => things.updateOne({}, { $inc: { text: 1 } })],
    ['a change of _id', 66, () => things.updateOne({}, { $set: { _id: 2 } })],
    ['one path changed twice', 40, () => things.updateOne({}, { $set: { b: 1 }, $inc: { 'b.c': 1 } })],
    ['a field inside a text', 28, () => things.updateOne({}, { $set: { 'text.inner': 1 } })],
    [
      'a push to a text',
      2,
      () => db.command({ findAndModify: things.collectionName, update: { $push: { text: 1 } } }),
    ],
    ['a modifier that is none', 9, () => things.updateOne({}, { $nope: { a: 1 } })],
    ['an expression that is none', 168, () => things.updateOne({}, [{ $set: { a: { $nope: 1 } } }])],
    ['a stage that is none', 40324, () => things.aggregate([{ $nope: {} }]).toArray()],
    ['a hint that names no index', 2, () => things.find({}).hint('nope').toArray()],
    ['a command that is none', 59, () => db.command({ nope: 1 })],
    ['a cursor that is none', 43, () => db.command({ getMore: Long.fromNumber(5), collection: 'x' })],
    ['an index that is none', 27, () => things.dropIndex('nope')],
    [
      'a transaction',
      20,
      () =>
        db.command({ find: 'x', txnNumber: Long.fromNumber(1), startTransaction: true, autocommit: false }),
    ],
  ])('refuse %s with code %i', async (_what, code, act) => {
    await things.insertOne({ _id: 1, text: 'text' });
    await expect(refusal(act())).resolves.toMatchObject({ code });
    expect(await things.find().toArray()).toEqual([{ _id: 1, text: 'text' }]);
  });
});

describe('indexes', () => {
  async function explain(
    command: object,
  ): Promise<{ stages: string[]; indexName: string | undefined; keys: number; documents: number }> {
    const { queryPlanner, executionStats } = (await db.command({
      explain: command,
      verbosity: 'executionStats',
    })) as Explained;
    const stages: string[] = [];
    let indexName: string | undefined;
    for (let stage: PlanStage | undefined = queryPlanner.winningPlan; stage; stage = stage.inputStage) {
      stages.push(stage.stage);
      indexName ??= stage.indexName;
    }
    return {
      stages,
      indexName,
      keys: executionStats.totalKeysExamined,
      documents: executionStats.totalDocsExamined,
    };
  }

  it('serve equality, range and order together, for every command that looks for documents', async () => {
    await things.createIndex({ status: 1, runAt: 1 });
    await things.createIndex({ other: 1 });
    await things.insertMany(
      range(1000, (i) => ({ _id: i, status: i % 10 ? 'done' : 'ready', runAt: new Date(i), other: i })),
    );
    const name = things.collectionName;
    const filter = { status: 'ready', runAt: { $lte: new Date(500) } };
    const found = await explain({ find: name, filter, sort: { runAt: -1 }, limit: 2 });
    expect(found).toEqual({
      stages: ['LIMIT', 'FETCH', 'IXSCAN'],
      indexName: 'status_1_runAt_1',
      keys: 2,
      documents: 2,
    });
    for (const command of [
      { count: name, query: filter },
      { distinct: name, key: 'other', query: filter },
      { delete: name, deletes: [{ q: filter, limit: 0 }] },
      { update: name, updates: [{ q: filter, u: { $set: { a: 1 } }, multi: true }] },
      {
        aggregate: name,
        pipeline: [{ $match: filter }, { $group: { _id: null, n: { $sum: 1 } } }],
        cursor: {},
      },
    ]) {
      await expect(explain(command)).resolves.toMatchObject({ indexName: 'status_1_runAt_1', documents: 51 });
    }
    const claim = {
      findAndModify: name,
      query: { status: 'ready' },
      sort: { runAt: 1 },
      update: { $set: { status: 'x' } },
    };
    await expect(explain(claim)).resolves.toMatchObject({ indexName: 'status_1_runAt_1', documents: 1 });
    expect((await explain({ find: name, filter: { nope: 1 } })).stages).toEqual(['COLLSCAN']);
    expect((await explain({ find: name, sort: { nope: 1 } })).stages).toEqual(['SORT', 'COLLSCAN']);
    expect(await things.countDocuments(filter)).toBe(51);
  });

  it('that are partial serve only what they hold', async () => {
    await things.createIndex(
      { order: 1, _id: 1 },
      { partialFilterExpression: { phase: 'ready' }, name: 'claim' },
      {},
    );
    await things.insertMany(range(200, (i) => ({ _id: i, phase: i % 2 ? 'ready' : 'done', order: -i })));
    const name = things.collectionName;
    const ready = { find: name, filter: { phase: 'ready' }, sort: { order: 1, _id: 1 }, limit: 1 };
    await expect(explain(ready)).resolves.toMatchObject({ indexName: 'claim', keys: 1 });
    await expect(explain({ ...ready, filter: { phase: 'done' } })).resolves.toMatchObject({
      indexName: undefined,
    });
    await expect(explain({ ...ready, filter: {} })).resolves.toMatchObject({ indexName: undefined });
    await expect(refusal(things.find({}).hint('claim').toArray())).resolves.toMatchObject({ code: 291 });
  });

  it('serve arrays by their elements, each document once', async () => {
    await things.createIndex({ tags: 1 });
    await things.insertMany([
      { _id: 1, tags: ['a', 'b', 'c'] },
      { _id: 2, tags: ['b'] },
      { _id: 3, tags: [] },
      { _id: 4 },
    ]);
    expect(
      (
        await things
          .find({ tags: { $gte: 'a' } })
          .hint('tags_1')
          .toArray()
      )
        .map(({ _id }) => _id)
        .sort(),
    ).toEqual([1, 2]);
    expect(await things.countDocuments({ tags: { $in: ['a', 'b'] } })).toBe(2);
    await change({ _id: 1 }, { $pull: { tags: 'b' } });
    expect(await things.distinct('tags')).toEqual(['a', 'b', 'c']);
    expect(await things.countDocuments({ tags: 'b' })).toBe(1);
  });

  it('remove what has expired', async () => {
    await things.createIndex({ expiresAt: 1 }, { expireAfterSeconds: 0 }, {});
    await things.insertMany([
      { _id: 1, expiresAt: new Date(Date.now() - 1) },
      { _id: 2, expiresAt: new Date(Date.now() + 60_000) },
      { _id: 3, expiresAt: 'never' },
    ]);
    while ((await things.countDocuments()) > 2);
    expect(await things.distinct('_id')).toEqual([2, 3]);
  });
});

describe('cursors', () => {
  it('hand out a whole result while documents come and go', async () => {
    await things.insertMany(range(1000, (_id) => ({ _id, n: _id % 7 })));
    await things.createIndex({ n: 1 });
    const seen: Thing['_id'][] = [];
    for await (const { _id } of things
      .find({ n: { $gte: 0 } })
      .sort({ n: 1, _id: 1 })
      .batchSize(50)) {
      seen.push(_id);
      if (seen.length % 100 === 0) await things.deleteOne({ _id: seen.at(-1) });
    }
    expect(new Set(seen).size).toBe(1000);
    const scanned: unknown[] = [];
    for await (const { _id } of things.find({}).batchSize(50)) {
      scanned.push(_id);
      if (scanned.length % 90 === 0) await things.deleteMany({ _id: { $lt: Number(_id) - 50 } });
    }
    expect(scanned).toHaveLength(990);
  });

  it('end in time with maxTimeMS, which later batches do not share', async () => {
    await things.insertMany(range(2000, (i) => ({ _id: i, i })));
    const pipeline = [{ $match: { $expr: { $gt: ['$i', '$$i'] } } }, { $limit: 1 }];
    const slow = [
      { $lookup: { from: things.collectionName, let: { i: '$i' }, pipeline, as: 'x' } },
      { $count: 'n' },
    ];
    await expect(refusal(things.aggregate(slow, { maxTimeMS: 20 }).toArray())).resolves.toMatchObject({
      code: 50,
    });
  });
});

describe('fail points', () => {
  it('make commands fail, so many times, by a code or by a broken connection', async () => {
    const admin = client.db('admin');
    await things.insertOne({ _id: 1 });
    const fail = (data: object): Promise<unknown> =>
      admin.command({
        configureFailPoint: 'failCommand',
        mode: { times: 1 },
        data: { failCommands: ['insert'], ...data },
      });
    await fail({ errorCode: 10107 });
    await expect(refusal(things.insertOne({ _id: 2 }))).resolves.toMatchObject({ code: 10107 });
    await fail({ closeConnection: true });
    await expect(things.insertOne({ _id: 2 })).rejects.toMatchObject({ name: 'MongoNetworkError' });
    await fail({ blockConnection: true, blockTimeMS: 50 });
    const startedAt = performance.now();
    await things.insertOne({ _id: 2 });
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(49);
    expect(await things.countDocuments()).toBe(2);
  });
});

describe('aggregation', () => {
  it('groups, joins, unwinds and writes', async () => {
    await things.insertMany(
      range(20, (i) => ({ _id: i, kind: `k${i % 3}`, list: [i, i + 1], parent: i - 1 })),
    );
    const run = (...pipeline: object[]): Promise<unknown[]> => things.aggregate(pipeline).toArray();
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
        { $lookup: { from: things.collectionName, localField: 'parent', foreignField: '_id', as: 'up' } },
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
    const target = db.collection<Thing>(`${things.collectionName}_out`);
    await run({ $match: { kind: 'k0' } }, { $out: target.collectionName });
    await run({ $match: { kind: 'k1' } }, { $set: { merged: true } }, { $merge: target.collectionName });
    expect([await target.countDocuments(), await target.countDocuments({ merged: true })]).toEqual([14, 7]);
  });

  it('answers counts by group from an index, null for what is missing', async () => {
    await things.createIndex({ state: 1, n: 1 });
    await things.insertMany([
      ...range(30, (n) => ({ _id: n, state: `s${n % 3}`, n })),
      { _id: 30, n: 1 },
      { _id: 31, state: null },
    ]);
    const pipeline = [{ $group: { _id: '$state', n: { $sum: 1 } } }, { $sort: { _id: 1 } }];
    await expect(things.aggregate(pipeline).toArray()).resolves.toEqual([
      { _id: null, n: 2 },
      { _id: 's0', n: 10 },
      { _id: 's1', n: 10 },
      { _id: 's2', n: 10 },
    ]);
    expect(await things.distinct('state')).toEqual([null, 's0', 's1', 's2']);
    expect(await things.distinct('n', { state: 's1' })).toHaveLength(10);
  });
});
