import fc from 'fast-check';
import { compareValues } from '../../../src/embedded/bson/compare';
import type { Document, Value } from '../../../src/embedded/bson/values';
import { countMatching, indexedGroups } from '../../../src/embedded/query/counting';
import { select } from '../../../src/embedded/query/execution';
import { selectionOf } from '../../../src/embedded/query/selection';
import { Sorter } from '../../../src/embedded/query/sort';
import { Scope } from '../../../src/embedded/scope';
import { Collection } from '../../../src/embedded/storage/collection';
import { parseIndexDefinition } from '../../../src/embedded/storage/index-definition';

const scope = Scope.of({}, new Date());

const scalar = fc.oneof(
  fc.integer({ min: 0, max: 4 }),
  fc.constantFrom<Value>('a', 'b', 'bc', null, true, NaN, 2n, 1.5, new Date(5)),
);
const value = fc.oneof(
  { weight: 6, arbitrary: scalar },
  { weight: 1, arbitrary: fc.array(scalar, { maxLength: 3 }) },
  { weight: 1, arbitrary: fc.record({ x: scalar }, { requiredKeys: [], noNullPrototype: true }) },
);
const document = fc.record(
  { a: value, b: scalar, c: scalar },
  { requiredKeys: [], noNullPrototype: true },
) as fc.Arbitrary<Document>;

const operators = fc.oneof(
  scalar,
  fc.record({ $eq: scalar }, { noNullPrototype: true }),
  fc.record({ $in: fc.array(scalar, { maxLength: 3 }) }, { noNullPrototype: true }),
  fc.record({ $gt: scalar }, { noNullPrototype: true }),
  fc.record({ $gte: scalar, $lt: scalar }, { noNullPrototype: true }),
  fc.record({ $lte: scalar }, { noNullPrototype: true }),
  fc.record({ $ne: scalar }, { noNullPrototype: true }),
  fc.record({ $exists: fc.boolean() }, { noNullPrototype: true }),
  fc.constant({ $regex: '^b' }),
  fc.constant({ $type: 'number' }),
) as fc.Arbitrary<Value>;
const conditions = fc.record(
  { a: operators, b: operators, c: operators, 'a.x': operators },
  { requiredKeys: [], noNullPrototype: true },
);
const filter = fc.oneof(
  { weight: 4, arbitrary: conditions },
  {
    weight: 1,
    arbitrary: fc.record(
      { $or: fc.array(conditions, { minLength: 1, maxLength: 2 }), c: operators },
      { requiredKeys: ['$or'], noNullPrototype: true },
    ),
  },
  {
    weight: 1,
    arbitrary: fc.record(
      { $and: fc.array(conditions, { minLength: 1, maxLength: 2 }) },
      { noNullPrototype: true },
    ),
  },
) as fc.Arbitrary<Document>;

const direction = fc.constantFrom(1, -1);
const sort = fc.oneof(
  fc.constant(undefined),
  fc.record({ a: direction }, { noNullPrototype: true }),
  fc.record({ b: direction, c: direction }, { noNullPrototype: true }),
  fc.record({ c: direction, _id: direction }, { noNullPrototype: true }),
) as fc.Arbitrary<Document | undefined>;

const INDEXES: Document[] = [
  { key: { a: 1 } },
  { key: { a: 1, b: -1 } },
  { key: { b: -1, c: 1 } },
  { key: { 'a.x': 1 }, sparse: true },
  { key: { c: 1, _id: 1 }, partialFilterExpression: { a: 1 } },
  { key: { b: 1 }, partialFilterExpression: { c: { $gte: 2 } } },
  { key: { c: 1, a: 1 }, sparse: true },
  { key: { c: 1 } },
];
const indexes = fc.subarray(INDEXES);

function collectionOf(documents: readonly Document[], specifications: readonly Document[]): Collection {
  const collection = new Collection('test.queries', {});
  for (const [i, specification] of specifications.entries()) {
    collection.createIndex(parseIndexDefinition({ name: `index${i}`, ...specification }));
  }
  documents.forEach((each, _id) => collection.insert({ _id, ...each }));
  return collection;
}

function idsOf(collection: Collection, wanted: Document, order?: Document, limit = 0): Value[] {
  const selection = selectionOf(collection, { filter: wanted, sort: order, limit }, scope);
  return [...select(selection)].map((record) => record.document._id);
}

describe('queries', () => {
  it('find the same with any indexes as with none', () => {
    fc.assert(
      fc.property(
        fc.array(document, { maxLength: 40 }),
        indexes,
        filter,
        (documents, specifications, wanted) => {
          const plain = idsOf(collectionOf(documents, []), wanted);
          const indexed = idsOf(collectionOf(documents, specifications), wanted);
          expect(indexed.toSorted((a, b) => compareValues(a, b))).toEqual(plain);
        },
      ),
      { numRuns: 250 },
    );
  });

  it('come in an order that sorting would give, and a limit gives the start of it', () => {
    fc.assert(
      fc.property(
        fc.array(document, { maxLength: 30 }),
        indexes,
        filter,
        sort,
        fc.nat(6),
        (documents, specifications, wanted, order, limit) => {
          const collection = collectionOf(documents, specifications);
          const all = [...select(selectionOf(collection, { filter: wanted, sort: order }, scope))];
          const rank = (each: { document: Document }): Document => each.document;
          if (order) expect(new Sorter(order).sort(all, rank)).toEqual(all);
          const some = idsOf(collection, wanted, order, limit + 1);
          expect(some).toHaveLength(Math.min(limit + 1, all.length));
        },
      ),
      { numRuns: 150 },
    );
  });

  it('are counted by an index as by looking at each', () => {
    fc.assert(
      fc.property(
        fc.array(document, { maxLength: 40 }),
        indexes,
        filter,
        (documents, specifications, wanted) => {
          const collection = collectionOf(documents, specifications);
          const matching = idsOf(collectionOf(documents, []), wanted);
          expect(countMatching(selectionOf(collection, { filter: wanted }, scope), wanted)).toBe(
            matching.length,
          );
          const groups = indexedGroups(collection, wanted, 'c');
          if (groups) expect(groups.reduce((sum, { count }) => sum + count, 0)).toBe(matching.length);
        },
      ),
      { numRuns: 150 },
    );
  });

  it('still find the same after documents were replaced and removed', () => {
    fc.assert(
      fc.property(
        fc.array(document, { minLength: 1, maxLength: 30 }),
        fc.array(fc.tuple(fc.nat(), fc.option(document)), { maxLength: 40 }),
        indexes,
        filter,
        (documents, changes, specifications, wanted) => {
          const collections = [collectionOf(documents, specifications), collectionOf(documents, [])];
          for (const collection of collections) {
            for (const [pick, replacement] of changes) {
              const records = [...collection.records()];
              const record = records[pick % Math.max(1, records.length)];
              if (!record) continue;
              if (replacement) collection.replace(record, { _id: record.document._id, ...replacement });
              else collection.remove(record);
            }
          }
          const [indexed, plain] = collections.map((collection) =>
            idsOf(collection, wanted).toSorted((a, b) => compareValues(a, b)),
          );
          expect(indexed).toEqual(plain);
          for (const { tree } of collections[0]?.indexes ?? []) {
            const rids = new Set<number>();
            const scan = tree.scan(
              { from: { prefix: [], after: false }, to: { prefix: [], after: true } },
              false,
            );
            while (scan.next()) rids.add(scan.entry.rid);
            for (const rid of rids)
              expect([...(collections[0]?.records() ?? [])].some((each) => each.rid === rid)).toBe(true);
          }
        },
      ),
      { numRuns: 100 },
    );
  });
});
