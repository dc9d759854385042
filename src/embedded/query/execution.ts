import type { Document } from '../bson/values';
import { at } from '../bson/values';
import type { Deadline } from '../deadline';
import type { Collection } from '../storage/collection';
import type { StoredRecord } from '../storage/collection-index';
import type { IndexKey } from '../storage/ordered-index';
import type { DocumentTest } from './filter';
import { contains } from './intervals';
import type { IndexPlan, KeyCondition, Plan } from './planner';
import type { Sorter } from './sort';

export interface ScanStatistics {
  keysExamined: number;
  docsExamined: number;
  returned: number;
}

export interface Selection {
  readonly collection: Collection;
  readonly plan: Plan;
  readonly test: DocumentTest;
  /** Needed unless the plan is ordered. */
  readonly sorter: Sorter | undefined;
  readonly skip: number;
  /** 0 for no limit. */
  readonly limit: number;
  readonly statistics: ScanStatistics;
  readonly deadline: Deadline;
}

export const newStatistics = (): ScanStatistics => ({ keysExamined: 0, docsExamined: 0, returned: 0 });

function passes(key: IndexKey, conditions: readonly KeyCondition[]): boolean {
  for (const { position, intervals } of conditions) {
    if (!contains(intervals, key[position])) return false;
  }
  return true;
}

function* scanIndex(plan: IndexPlan, { statistics, deadline }: Selection): Generator<StoredRecord> {
  const { index, ranges, backward, keyConditions } = plan;
  const seen = index.multikey ? new Set<number>() : undefined;
  for (let i = 0; i < ranges.length; i++) {
    const scan = index.tree.scan(at(ranges, backward ? ranges.length - 1 - i : i), backward);
    while (scan.next()) {
      deadline.check();
      statistics.keysExamined++;
      if (keyConditions.length > 0 && !passes(scan.key, keyConditions)) continue;
      const { entry } = scan;
      if (seen) {
        if (seen.has(entry.rid)) continue;
        seen.add(entry.rid);
      }
      yield entry;
    }
  }
}

function* candidates(selection: Selection): Generator<StoredRecord> {
  const { plan, collection, deadline } = selection;
  if (plan.kind === 'index') {
    yield* scanIndex(plan, selection);
  } else if (plan.kind === 'union') {
    const seen = new Set<number>();
    for (const branch of plan.branches) {
      for (const record of scanIndex(branch, selection)) {
        if (seen.has(record.rid)) continue;
        seen.add(record.rid);
        yield record;
      }
    }
  } else {
    const records = plan.backward ? [...collection.records()].reverse() : collection.records();
    for (const record of records) {
      deadline.check();
      yield record;
    }
  }
}

function* matches(selection: Selection): Generator<StoredRecord> {
  const { plan, test, statistics } = selection;
  const exact = plan.kind === 'index' && plan.exact;
  for (const record of candidates(selection)) {
    statistics.docsExamined++;
    if (exact || test(record.document)) yield record;
  }
}

/** The matching records in order. It may be left off and taken up again after other commands. */
export function* select(selection: Selection): Generator<StoredRecord> {
  const { plan, sorter, limit, statistics } = selection;
  const wanted = limit > 0 ? selection.skip + limit : 0;
  const found =
    plan.ordered || !sorter
      ? matches(selection)
      : sorter.sort(matches(selection), ({ document }): Document => document, wanted);
  let toSkip = selection.skip;
  for (const record of found) {
    if (toSkip > 0) {
      toSkip--;
      continue;
    }
    statistics.returned++;
    yield record;
    if (limit > 0 && statistics.returned >= limit) return;
  }
}
