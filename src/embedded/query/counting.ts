import type { Document, Value } from '../bson/values';
import { field, isDocument } from '../bson/values';
import type { Collection } from '../storage/collection';
import type { StoredRecord } from '../storage/collection-index';
import type { Bound } from '../storage/ordered-index';
import type { Selection } from './execution';
import { select } from './execution';
import type { IndexPlan } from './planner';
import { exactIndexPlans } from './planner';

/** How many match, from the counts that the indexes keep where they tell exactly, without reading the entries. */
export function countMatching(selection: Selection, filter: Document): number {
  const { plan, collection, statistics } = selection;
  if (Object.keys(filter).length === 0) return collection.count;
  if (plan.kind === 'index' && plan.exact && plan.keyConditions.length === 0) {
    const count = plan.ranges.reduce((sum, range) => sum + plan.index.tree.countIn(range), 0);
    statistics.returned = count;
    return count;
  }
  let count = 0;
  for (const _record of select(selection)) count++;
  return count;
}

export interface IndexedGroup {
  readonly value: Value;
  readonly count: number;
  readonly first: StoredRecord;
  readonly plan: IndexPlan;
  readonly bound: Bound;
}

/** The position of `path` in an index that, behind components with one value each, has what matches in groups by it. */
function groupPosition(plan: IndexPlan, path: string): number {
  const { parts } = plan.index.definition;
  const position = parts.findIndex((part) => part.path === path);
  const before = plan.bounds.slice(0, Math.max(0, position));
  const constant = before.every(
    (intervals) => intervals?.length === 1 && intervals[0]?.low === intervals[0]?.high,
  );
  return constant && plan.keyConditions.length === 0 && plan.bounds.slice(position + 1).every((each) => !each)
    ? position
    : -1;
}

/**
 * The distinct values of a path among the documents that match, with their counts, by hopping from one value to the
 * next in an index: O(log n) for each value. Missing fields count as null.
 * @returns undefined when no index tells
 */
export function indexedGroups(
  collection: Collection,
  filter: Document,
  path: string,
): IndexedGroup[] | undefined {
  for (const plan of exactIndexPlans(collection, filter)) {
    const position = groupPosition(plan, path);
    if (position >= 0) return [...hop(plan, position)];
  }
  return undefined;
}

function* hop(plan: IndexPlan, position: number): Generator<IndexedGroup> {
  const { tree } = plan.index;
  for (const { from, to } of plan.ranges) {
    const end = tree.rankOf(to);
    let start = tree.rankOf(from);
    let bound = from;
    while (start < end) {
      const scan = tree.scan({ from: bound, to }, false);
      if (!scan.next()) break;
      const { key, entry } = scan;
      const next: Bound = { prefix: key.slice(0, position + 1), after: true };
      const reached = Math.min(tree.rankOf(next), end);
      yield { value: key[position] ?? null, count: reached - start, first: entry, plan, bound };
      start = reached;
      bound = next;
    }
  }
}

/** Whether any document of a group of nulls has the field: an index doesn't tell null from missing. */
export function holdsNull({ plan, bound, count }: IndexedGroup, path: string): boolean {
  const scan = plan.index.tree.scan({ from: bound, to: { prefix: [], after: true } }, false);
  for (let i = 0; i < count && scan.next(); i++) {
    let value: Value = scan.entry.document;
    for (const part of path.split('.')) value = isDocument(value) ? field(value, part) : undefined;
    if (value === null) return true;
  }
  return false;
}
