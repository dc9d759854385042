import { Binary, Decimal128, Double, Int32, Long, ObjectId } from 'mongodb';
import { refusal, useEmbedded } from '../../support/embedded-fixture';

const embedded = useEmbedded();

/** The names of the types of a document's fields, as they came over the wire. */
async function typesOf(filter: object): Promise<Record<string, string>> {
  const found = await embedded.things.findOne(filter, { promoteValues: false });
  const entries = Object.entries(found ?? {}).filter(([name]) => name !== '_id');
  return Object.fromEntries(
    entries.map(([name, value]) => [name, (value as { _bsontype?: string })._bsontype ?? typeof value]),
  );
}

describe('types', () => {
  it('stay what they are through updates of other fields and of their own', async () => {
    await embedded.things.insertOne({
      _id: 1,
      int: new Int32(1),
      long: Long.fromNumber(1),
      double: new Double(1),
      decimal: Decimal128.fromString('1.10'),
      list: [Long.fromNumber(5), new Double(6)],
    });
    await embedded.things.updateOne(
      { _id: 1 },
      { $inc: { int: 1, long: 1, double: 1, decimal: 1 }, $set: { text: 'x' } },
    );
    await embedded.things.updateOne({ _id: 1 }, [
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
    const found = await embedded.things.findOne({ _id: 1 }, { promoteValues: false, promoteLongs: false });
    expect(String(found?.decimal)).toBe('2.10');
    expect((found?.list as { _bsontype: string }[]).map(({ _bsontype }) => _bsontype)).toEqual([
      'Long',
      'Double',
    ]);
  });

  it('widen an int32 that overflows and refuse an int64 that does', async () => {
    await embedded.things.insertOne({ _id: 1, int: new Int32(2 ** 31 - 1), long: Long.MAX_VALUE });
    await embedded.things.updateOne({ _id: 1 }, { $inc: { int: 1 } });
    await expect(typesOf({ _id: 1 })).resolves.toMatchObject({ int: 'Long' });
    await expect(
      refusal(embedded.things.updateOne({ _id: 1 }, { $inc: { long: 1 } })),
    ).resolves.toMatchObject({
      code: 2,
    });
  });

  it('compare by value across numeric types, with and without an index', async () => {
    await embedded.things.insertMany([
      { _id: 1, n: new Int32(5) },
      { _id: 2, n: Long.fromNumber(5) },
      { _id: 3, n: new Double(5) },
      { _id: 4, n: Decimal128.fromString('5.0') },
      { _id: 5, n: '5' },
    ]);
    expect(await embedded.things.countDocuments({ n: 5 })).toBe(4);
    await embedded.things.createIndex({ n: 1 });
    expect(await embedded.things.countDocuments({ n: Long.fromNumber(5) })).toBe(4);
    expect((await embedded.things.find({ n: { $gte: 4.5 } }).toArray()).length).toBe(4);
    const [group] = await embedded.things
      .aggregate([{ $match: { n: 5 } }, { $group: { _id: '$n', n: { $sum: 1 } } }])
      .toArray();
    expect(group).toMatchObject({ n: 4 });
  });

  it('include bytes, ids and dates as keys', async () => {
    const id = new ObjectId();
    await embedded.things.insertMany([
      { _id: id },
      { _id: new Binary(Buffer.from('key')) },
      { _id: new Date(5) },
    ]);
    await embedded.db.command({
      insert: embedded.things.collectionName,
      documents: [{ _id: { a: 1, b: [2] } }],
    });
    for (const _id of [id, new Binary(Buffer.from('key')), new Date(5)]) {
      expect(await embedded.things.countDocuments({ _id })).toBe(1);
    }
    const count = async (_id: object): Promise<unknown> =>
      (await embedded.db.command({ count: embedded.things.collectionName, query: { _id } })).n;
    await expect(count({ a: 1, b: [2] })).resolves.toBe(1);
    await expect(count({ b: [2], a: 1 })).resolves.toBe(0);
  });
});
