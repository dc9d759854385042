import type { Document } from 'mongodb';
import { useEmbedded } from '../../support/embedded-fixture';

const embedded = useEmbedded();

/** The driver sends a map in the order it was filled; an object it would send with the numbers first. */
const fields = (...names: string[]): Map<string, unknown> => new Map(names.map((name) => [name, 1]));

function namesIn(bytes: Buffer): string[] {
  const names: string[] = [];
  let at = 4;
  while (bytes[at] !== 0) {
    const type = bytes[at];
    const end = bytes.indexOf(0, at + 1);
    names.push(bytes.toString('utf8', at + 1, end));
    const [value, document] = [end + 1, 3];
    if (type === document)
      names.push(...namesIn(bytes.subarray(value)).map((name) => `${String(names.at(-1))}.${name}`));
    at = value + (type === document ? bytes.readInt32LE(value) : 4);
  }
  return names;
}

/** The names of a stored document's fields as they are sent; an object made of it wouldn't tell. */
async function storedNames(options: Document = {}): Promise<string[]> {
  const [bytes] = await embedded.things.find({}, { raw: true, ...options }).toArray();
  return namesIn(Buffer.from(bytes as unknown as Uint8Array));
}

const insert = (document: unknown): Promise<Document> =>
  embedded.db.command({ insert: embedded.things.collectionName, documents: [document] });

describe('fields keep the order they were sent in', () => {
  it('with numbers for names, all the way down', async () => {
    const inner = fields('z', '2', '10', '1');
    await insert(
      new Map<string, unknown>([
        ['_id', 1],
        ['b', 1],
        ['7', inner],
        ['0', 1],
      ]),
    );
    await expect(storedNames()).resolves.toEqual(['_id', 'b', '7', '7.z', '7.2', '7.10', '7.1', '0']);
  });

  it('but for _id, which comes first', async () => {
    await insert(fields('b', '0', '_id', 'a'));
    await expect(storedNames()).resolves.toEqual(['_id', 'b', '0', 'a']);
  });

  it('through updates: what is new comes last, and what is changed stays', async () => {
    await insert(fields('_id', 'b', '3'));
    const change = (update: object): Promise<unknown> => embedded.things.updateOne({}, update);
    await change({ $set: { 1: 1, 3: 2, c: 1 } });
    await expect(storedNames()).resolves.toEqual(['_id', 'b', '3', '1', 'c']);
    await change({ $unset: { 3: 1 } });
    await change({ $set: { 3: 1 } });
    await expect(storedNames()).resolves.toEqual(['_id', 'b', '1', 'c', '3']);
    await change([{ $set: { 0: 1 } }]);
    await expect(storedNames()).resolves.toEqual(['_id', 'b', '1', 'c', '3', '0']);
  });

  it('through a replacement and an upsert', async () => {
    const name = embedded.things.collectionName;
    const update = (q: object, u: unknown): Promise<Document> =>
      embedded.db.command({ update: name, updates: [{ q, u, upsert: true }] });
    await update({ _id: 1 }, fields('b', '0'));
    await expect(storedNames()).resolves.toEqual(['_id', 'b', '0']);
    await update({ _id: 1 }, fields('5', '4'));
    await expect(storedNames()).resolves.toEqual(['_id', '5', '4']);
  });

  it('through projections', async () => {
    await insert(fields('_id', 'b', '3', '1', 'c'));
    await expect(storedNames({ projection: { b: 0 } })).resolves.toEqual(['_id', '3', '1', 'c']);
    await expect(storedNames({ projection: { 1: 1, c: 1, 3: 1, _id: 0 } })).resolves.toEqual(['3', '1', 'c']);
  });

  it('and differ by it', async () => {
    const name = embedded.things.collectionName;
    const documents = [fields('1', '0'), fields('0', '1')].map(
      (of, _id) =>
        new Map<string, unknown>([
          ['_id', _id],
          ['of', of],
        ]),
    );
    await embedded.db.command({ insert: name, documents });
    const reply = await embedded.db.command({ find: name, filter: { of: fields('1', '0') } });
    expect((reply.cursor as { firstBatch: Document[] }).firstBatch).toMatchObject([{ _id: 0 }]);
  });

  it('in an index and in an order as well', async () => {
    const name = embedded.things.collectionName;
    await embedded.things.insertMany([
      { _id: 1, b: 1, 0: 2 },
      { _id: 2, b: 1, 0: 1 },
      { _id: 3, b: 0, 0: 3 },
    ]);
    await embedded.db.command({ createIndexes: name, indexes: [{ name: 'b_0', key: fields('b', '0') }] });
    for (const hint of ['b_0', { $natural: 1 }]) {
      const reply = await embedded.db.command({ find: name, sort: fields('b', '0'), hint });
      expect((reply.cursor as { firstBatch: Document[] }).firstBatch.map(({ _id }) => _id as number)).toEqual(
        [3, 2, 1],
      );
    }
  });
});
