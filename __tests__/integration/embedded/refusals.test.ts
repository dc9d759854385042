import { Long } from 'mongodb';
import type { Document } from 'mongodb';
import { refusal, useEmbedded } from '../../support/embedded-fixture';

const embedded = useEmbedded();

const insert = (...documents: Document[]): Promise<Document> =>
  embedded.db.command({ insert: embedded.things.collectionName, documents });

const index = (key: Document, options: Document = {}): Promise<Document> =>
  embedded.db.command({
    createIndexes: embedded.things.collectionName,
    indexes: [{ key, name: Object.keys(key).join('_'), ...options }],
  });

/** The code that one update of one document is refused with. */
async function codeOfUpdate(
  document: Document,
  update: Document | Document[],
  options: Document = {},
): Promise<unknown> {
  await insert(document);
  const reply = await embedded.db.command({
    update: embedded.things.collectionName,
    updates: [{ q: {}, u: update, ...options }],
  });
  return (reply.writeErrors as { code: number }[] | undefined)?.[0]?.code;
}

describe('an index is refused as MongoDB 7.0 refuses it', () => {
  it.each([
    ['another retention', {}, { expireAfterSeconds: 10 }, { expireAfterSeconds: 20 }, 85],
    ['a retention where there is none', {}, {}, { expireAfterSeconds: 20 }, 85],
    ['uniqueness', {}, {}, { unique: true }, 86],
    ['sparseness', {}, {}, { sparse: true }, 86],
    ['a partial filter', {}, {}, { partialFilterExpression: { b: 1 } }, 86],
    ['another key', { b: 1 }, {}, {}, 86],
  ])('of the same name with %s', async (_what, key, first, second, code) => {
    await index({ a: 1 }, { ...first, name: 'taken' });
    const wanted = Object.keys(key).length > 0 ? key : { a: 1 };
    expect(await refusal(index(wanted, { ...second, name: 'taken' }))).toMatchObject({ code });
  });

  it.each([
    ['a retention of _id', { _id: 1 }, { expireAfterSeconds: 1 }, 197],
    ['a retention beyond 32 bits', { a: 1 }, { expireAfterSeconds: 3_000_000_000 }, 67],
    ['a retention of two fields', { a: 1, b: 1 }, { expireAfterSeconds: 1 }, 67],
    ['a filter with $ne', { a: 1 }, { partialFilterExpression: { b: { $ne: 1 } } }, 67],
    ['a filter with $nin', { a: 1 }, { partialFilterExpression: { b: { $nin: [1] } } }, 67],
    ['a filter for what is missing', { a: 1 }, { partialFilterExpression: { b: { $exists: false } } }, 67],
    ['a filter with $not', { a: 1 }, { partialFilterExpression: { b: { $not: { $gt: 1 } } } }, 67],
    ['a filter with $nor', { a: 1 }, { partialFilterExpression: { $nor: [{ b: 1 }] } }, 67],
    ['a filter with an expression', { a: 1 }, { partialFilterExpression: { $expr: { $eq: ['$b', 1] } } }, 67],
  ])('for %s', async (_what, key, options, code) => {
    expect(await refusal(index(key, options))).toMatchObject({ code });
  });

  it('unless its filter has only what a partial index can hold', async () => {
    const partialFilterExpression = {
      b: { $exists: true, $type: 'int' },
      c: { $gt: 1, $gte: 1, $lt: 9, $lte: 9, $eq: 2 },
      $and: [{ d: 1 }, { $or: [{ e: 1 }, { e: { $in: [1, 2] } }] }],
    };
    await expect(index({ a: 1 }, { partialFilterExpression })).resolves.toMatchObject({ ok: 1 });
  });

  it('and a key that no index has is not dropped, whatever its type', async () => {
    await insert({ _id: 1 });
    const command = { dropIndexes: embedded.things.collectionName, index: { a: Long.fromNumber(1) } };
    expect(await refusal(embedded.db.command(command))).toMatchObject({ code: 27 });
  });
});

describe('an update is refused as MongoDB 7.0 refuses it', () => {
  it.each([
    ['a field renamed to itself', { a: 1 }, { $rename: { a: 'a' } }, 2],
    ['a field renamed into itself', { a: 1 }, { $rename: { a: 'a.b' } }, 2],
    ['a set that is no array', { a: 1 }, { $addToSet: { a: 1 } }, 2],
    ['bits of a fraction', { a: 1.5 }, { $bit: { a: { or: 1 } } }, 2],
    ['bits with a fraction', { a: 1 }, { $bit: { a: { or: 1.5 } } }, 2],
    ['a slice that is no number', { a: [1] }, { $push: { a: { $each: [1], $slice: 'x' } } }, 2],
    ['a position that is no number', { a: [1] }, { $push: { a: { $each: [1], $position: 'x' } } }, 2],
    ['a direction that is none', { a: [1] }, { $push: { a: { $each: [1], $sort: 2 } } }, 2],
    ['an operator that every object has', { a: 1 }, { $set: { a: 2 }, constructor: { a: 1 } }, 9],
  ])('for %s', async (_what, document, change, code) => {
    expect(await codeOfUpdate(document, change)).toBe(code);
    const [stored] = await embedded.things.find({}, { projection: { _id: 0 } }).toArray();
    expect(stored).toEqual(document);
  });

  it('for an array filter whose name does not begin in lower case', async () => {
    const arrayFilters = [{ E: 1 }];
    expect(await codeOfUpdate({ a: [1] }, { $set: { 'a.$[E]': 0 } }, { arrayFilters })).toBe(2);
  });

  it.each([
    ['two values for a field', { $and: [{ a: 1 }, { a: 2 }] }, { $set: { b: 1 } }, 54],
    ['a value for a field and for a part of it', { a: 1, 'a.b': 2 }, { $set: { b: 1 } }, 54],
    ['another _id than the filter', { _id: 1 }, { $set: { _id: 2 } }, 66],
    ['another _id than the filter, as a replacement', { _id: 1 }, { _id: 2, b: 1 }, 66],
  ])('that would insert %s', async (_what, filter, update, code) => {
    const command = {
      findAndModify: embedded.things.collectionName,
      query: filter,
      update,
      upsert: true,
    };
    expect(await refusal(embedded.db.command(command))).toMatchObject({ code });
    expect(await embedded.things.countDocuments()).toBe(0);
  });
});

describe('a query is refused as MongoDB 7.0 refuses it', () => {
  it.each([
    ['a pattern that is none', { filter: { a: { $regex: '(' } } }, 51091],
    ['a remainder of what is no number', { filter: { a: { $mod: [NaN, 1] } } }, 2],
    ['a remainder of infinity', { filter: { a: { $mod: [2, Infinity] } } }, 2],
    ['bits of a fraction', { filter: { a: { $bitsAllSet: 1.5 } } }, 9],
    ['bits at a negative position', { filter: { a: { $bitsAllSet: [-1] } } }, 2],
    ['a field kept beside one left out', { projection: { a: 0, b: 1 } }, 31253],
    ['a field left out beside one kept', { projection: { a: 1, b: 0 } }, 31254],
    ['a part of what is kept already', { projection: { a: 1, 'a.b': 1 } }, 31249],
    ['the whole of what is kept in part', { projection: { 'a.b': 1, a: 1 } }, 31250],
  ])('for %s', async (_what, options, code) => {
    await insert({ _id: 1, a: 1 });
    const command = { find: embedded.things.collectionName, ...options };
    expect(await refusal(embedded.db.command(command))).toMatchObject({ code });
  });
});

describe('a command is refused as MongoDB 7.0 refuses it', () => {
  it.each([
    ['an empty insert', { insert: 'refused', documents: [] }, 16],
    ['an empty update', { update: 'refused', updates: [] }, 16],
    ['a delete without a limit', { delete: 'refused', deletes: [{ q: {} }] }, 40414],
    ['a collection named with a $', { insert: '$refused', documents: [{ _id: 1 }] }, 73],
    ['a collection named with a leading dot', { insert: '.refused', documents: [{ _id: 1 }] }, 73],
  ])('for %s', async (_what, command, code) => {
    expect(await refusal(embedded.db.command(command))).toMatchObject({ code });
  });

  it('for a delete of two', async () => {
    const reply = await embedded.db.command({ delete: 'refused', deletes: [{ q: {}, limit: 2 }] });
    expect(reply.writeErrors).toMatchObject([{ index: 0, code: 9 }]);
  });

  it('when the collection that a cursor reads is dropped', async () => {
    await insert(...Array.from({ length: 10 }, (_, _id) => ({ _id })));
    const cursor = embedded.things.find({}, { batchSize: 2 });
    await cursor.next();
    await cursor.next();
    await embedded.things.drop();
    expect(await refusal(cursor.next())).toMatchObject({ code: 175 });
  });
});

it('an aggregation that is asked to explain itself tells its plan and gives no documents', async () => {
  await insert({ _id: 1, a: 1 });
  const reply = await embedded.db.command({
    aggregate: embedded.things.collectionName,
    pipeline: [{ $match: { a: 1 } }],
    explain: true,
  });
  expect(reply).toMatchObject({ queryPlanner: { winningPlan: { stage: 'COLLSCAN' } }, ok: 1 });
  expect(reply).not.toHaveProperty('cursor');
});
