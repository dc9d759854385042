import fc from 'fast-check';
import { compareValues } from '../../../src/embedded/bson/compare';
import type { Value } from '../../../src/embedded/bson/values';
import type { Bound, IndexKey } from '../../../src/embedded/storage/ordered-index';
import { OrderedIndex } from '../../../src/embedded/storage/ordered-index';

interface Item {
  readonly rid: number;
  readonly key: IndexKey;
}

/** The first component goes up, the second one down. */
function compareKeys(a: IndexKey, b: IndexKey, length: number): number {
  for (let i = 0; i < length; i++) {
    const order = compareValues(a[i], b[i]) * (i === 0 ? 1 : -1);
    if (order !== 0) return order;
  }
  return 0;
}

const compareItems = (a: Item, b: Item): number => compareKeys(a.key, b.key, 2) || a.rid - b.rid;

const isBefore = (item: Item, { prefix, after }: Bound): boolean => {
  const order = compareKeys(item.key, prefix, prefix.length);
  return after ? order <= 0 : order < 0;
};

function collect(index: OrderedIndex<Item>, from: Bound, to: Bound, backward: boolean): number[] {
  const scan = index.scan({ from, to }, backward);
  const rids: number[] = [];
  while (scan.next()) rids.push(scan.entry.rid);
  return rids;
}

const component = fc.oneof(fc.integer({ min: 0, max: 12 }), fc.constantFrom<Value>('a', 'b', null, true));
const bound = fc.record({
  prefix: fc.oneof(fc.tuple(component), fc.tuple(component, component), fc.constant([])),
  after: fc.boolean(),
});

describe('ordered index', () => {
  it('holds, counts and scans what a sorted list would', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(component, component), { maxLength: 600 }),
        fc.array(fc.nat(), { maxLength: 500 }),
        bound,
        bound,
        (keys, removals, from, to) => {
          const index = new OrderedIndex<Item>(compareKeys, 2);
          let items = keys.map((key, rid): Item => ({ rid, key }));
          for (const item of items) index.insert(item.key, item);
          for (const pick of removals) {
            const victim = items[pick % Math.max(1, items.length)];
            if (!victim) continue;
            expect(index.remove(victim.key, victim.rid)).toBe(true);
            expect(index.remove(victim.key, victim.rid)).toBe(false);
            items = items.filter((item) => item !== victim);
          }
          items.sort(compareItems);
          const expected = items
            .filter((item) => !isBefore(item, from) && isBefore(item, to))
            .map(({ rid }) => rid);
          expect(index.size).toBe(items.length);
          expect(collect(index, from, to, false)).toEqual(expected);
          expect(collect(index, from, to, true)).toEqual(expected.toReversed());
          expect(index.countIn({ from, to })).toBe(expected.length);
          expect(index.rankOf(from)).toBe(items.filter((item) => isBefore(item, from)).length);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('finds its place again when entries come and go during a scan, in either direction', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.nat(2000), { minLength: 1, maxLength: 400 }),
        fc.boolean(),
        (numbers, backward) => {
          const index = new OrderedIndex<Item>(compareKeys, 2);
          const all = numbers.map((n): Item => ({ rid: n, key: [n * 2, 0] }));
          for (const item of all) index.insert(item.key, item);
          const whole: Bound = { prefix: [], after: false };
          const scan = index.scan({ from: whole, to: { prefix: [], after: true } }, backward);
          const seen: number[] = [];
          while (scan.next()) {
            const { rid, key } = scan.entry;
            seen.push(rid);
            // What is behind the scan doesn't concern it: its own entry goes, and another one comes where it has been.
            index.remove(key, rid);
            const behind = rid * 2 + (backward ? 1 : -1);
            index.insert([behind, 0], { rid: 10_000 + rid, key: [behind, 0] });
          }
          const ordered = numbers.toSorted((a, b) => a - b);
          expect(seen).toEqual(backward ? ordered.reverse() : ordered);
        },
      ),
      { numRuns: 40 },
    );
  });

  it('stays right through a long queue: added at one end, taken from the other', () => {
    const index = new OrderedIndex<Item>(compareKeys, 2);
    for (let n = 0; n < 20_000; n++) {
      index.insert([n, 0], { rid: n, key: [n, 0] });
      if (n >= 500) expect(index.remove([n - 500, 0], n - 500)).toBe(true);
    }
    expect(index.size).toBe(500);
    const all = collect(index, { prefix: [], after: false }, { prefix: [], after: true }, false);
    expect(all).toEqual(Array.from({ length: 500 }, (_, i) => 19_500 + i));
  });
});
