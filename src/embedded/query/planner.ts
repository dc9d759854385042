import { keyOf } from '../bson/compare';
import { entriesOf } from '../bson/field-order';
import type { Document, Value } from '../bson/values';
import { isDocument, isNumeric, toNumber } from '../bson/values';
import { badValue, CommandError } from '../errors';
import type { Collection } from '../storage/collection';
import type { CollectionIndex } from '../storage/collection-index';
import type { IndexRange } from '../storage/ordered-index';
import type { Condition, Conditions, Intervals } from './intervals';
import { conditionsIn, includes, intersect, isPoint } from './intervals';

/** More combinations of points than this aren't worth a seek each. */
const MAX_RANGES = 4096;
/** The size of this many ranges is counted; that of the others is taken to be alike. */
const COUNTED_RANGES = 32;

export interface KeyCondition {
  readonly position: number;
  readonly intervals: Intervals;
}

export interface IndexPlan {
  readonly kind: 'index';
  readonly index: CollectionIndex;
  /** In the index's own order. */
  readonly ranges: readonly IndexRange[];
  /** What is known about key components that the ranges don't bound. */
  readonly keyConditions: readonly KeyCondition[];
  readonly bounds: readonly (Intervals | undefined)[];
  readonly backward: boolean;
  /** The entries come in the order that was asked for. */
  readonly ordered: boolean;
  /** Every entry matches the filter: the documents needn't be looked at for that. */
  readonly exact: boolean;
  readonly keys: number;
}

export interface CollectionPlan {
  readonly kind: 'collection';
  readonly backward: boolean;
  readonly ordered: boolean;
}

/** The matches of any of several plans, one for each clause of an `$or`. */
export interface UnionPlan {
  readonly kind: 'union';
  readonly branches: readonly IndexPlan[];
  readonly ordered: false;
}

export type Plan = IndexPlan | CollectionPlan | UnionPlan;

export interface PlanRequest {
  readonly filter: Document;
  readonly sort?: Document | undefined;
  readonly hint?: Value;
  /** How many matches are wanted; 0 for all. */
  readonly limit?: number;
  /** Strings compare in another order than the indexes keep. */
  readonly collated?: boolean;
}

function implies(given: Condition, wanted: Condition): boolean {
  if (given.path !== wanted.path) return false;
  if (given.intervals && wanted.intervals && includes(wanted.intervals, given.intervals)) return true;
  if (wanted.operator === '$exists' && wanted.needsField) return given.needsField;
  return given.operator === wanted.operator && keyOf(given.argument) === keyOf(wanted.argument);
}

const isConstant = (intervals: Intervals | undefined): boolean =>
  intervals?.length === 1 && intervals[0] !== undefined && isPoint(intervals[0]);

class IndexPlanner {
  readonly #partial: Conditions | undefined;

  constructor(
    readonly index: CollectionIndex,
    readonly conditions: Conditions,
  ) {
    const { partialFilter } = index.definition;
    this.#partial = partialFilter && conditionsIn(partialFilter);
  }

  /** The index holds every document that the filter matches. */
  get isComplete(): boolean {
    const { exact } = this.conditions;
    if (this.#partial) {
      if (this.#partial.incomplete) return false;
      if (!this.#partial.exact.every((wanted) => exact.some((given) => implies(given, wanted)))) return false;
    }
    if (!this.index.definition.sparse) return true;
    const paths = new Set(this.index.definition.parts.map(({ path }) => path));
    return exact.some(({ path, needsField }) => needsField && paths.has(path));
  }

  plan(sort: Document | undefined): IndexPlan {
    const { parts } = this.index.definition;
    const bounds = parts.map((_, position) => this.#boundsAt(position));
    const { ranges, depth } = this.#rangesOf(bounds);
    const keyConditions = bounds.flatMap((intervals, position) =>
      intervals && position >= depth ? [{ position, intervals }] : [],
    );
    const direction = sort ? this.#directionFor(sort, bounds) : 1;
    return {
      kind: 'index',
      index: this.index,
      ranges,
      keyConditions,
      bounds,
      backward: direction === -1,
      ordered: direction !== undefined,
      exact: this.#isExact(),
      keys: this.#count(ranges),
    };
  }

  #boundsAt(position: number): Intervals | undefined {
    const path = this.index.definition.parts[position]?.path;
    const exact = this.conditions.exact.flatMap((each) =>
      each.path === path && each.intervals ? [each.intervals] : [],
    );
    const loose = this.conditions.loose.flatMap((each) => (each.path === path ? [each.intervals] : []));
    const all = [...exact, ...loose];
    if (all.length === 0) return undefined;
    // Different elements of an array may satisfy different conditions: only one of them may bound the scan.
    if (this.index.multikey) return position === 0 ? (all.find(isConstant) ?? all[0]) : undefined;
    return all.reduce(intersect);
  }

  /** Ranges of points for as long as components are bounded by points; the first one that isn't ends them. */
  #rangesOf(bounds: readonly (Intervals | undefined)[]): { ranges: IndexRange[]; depth: number } {
    let prefixes: Value[][] = [[]];
    const around = (prefix: Value[]): IndexRange => ({
      from: { prefix, after: false },
      to: { prefix, after: true },
    });
    for (let depth = 0; depth < bounds.length; depth++) {
      const intervals = bounds[depth];
      if (!intervals || prefixes.length * intervals.length > MAX_RANGES) {
        return { ranges: prefixes.map(around), depth };
      }
      const descending = this.index.definition.parts[depth]?.direction === -1;
      const ordered = descending ? intervals.toReversed() : intervals;
      if (!ordered.every(isPoint)) {
        const ranges = prefixes.flatMap((prefix) =>
          ordered.map(({ low, lowIncluded, high, highIncluded }): IndexRange => {
            const lower = { prefix: [...prefix, low], included: lowIncluded };
            const upper = { prefix: [...prefix, high], included: highIncluded };
            const [first, last] = descending ? [upper, lower] : [lower, upper];
            return {
              from: { prefix: first.prefix, after: !first.included },
              to: { prefix: last.prefix, after: last.included },
            };
          }),
        );
        return { ranges, depth: depth + 1 };
      }
      prefixes = prefixes.flatMap((prefix) => ordered.map(({ low }) => [...prefix, low]));
    }
    return { ranges: prefixes.map(around), depth: bounds.length };
  }

  /** 1 or -1 when a scan that way gives the wanted order; components with one value don't matter to it. */
  #directionFor(sort: Document, bounds: readonly (Intervals | undefined)[]): 1 | -1 | undefined {
    if (this.index.multikey) return undefined;
    const { parts } = this.index.definition;
    const constants = new Set(parts.flatMap(({ path }, i) => (isConstant(bounds[i]) ? [path] : [])));
    for (const { path, intervals } of this.conditions.exact)
      if (isConstant(intervals) && this.#isPartialOn(path)) constants.add(path);
    let direction: 1 | -1 | undefined;
    let position = 0;
    for (const [path, how] of entriesOf(sort)) {
      if (constants.has(path)) continue;
      if (!isNumeric(how)) return undefined;
      while (constants.has(parts[position]?.path ?? '')) position++;
      const part = parts[position++];
      if (part?.path !== path) return undefined;
      const needed = part.direction === Math.sign(toNumber(how)) ? 1 : -1;
      direction ??= needed;
      if (direction !== needed) return undefined;
    }
    return direction ?? 1;
  }

  #isPartialOn(path: string): boolean {
    return this.#partial?.exact.some((each) => each.path === path && isConstant(each.intervals)) === true;
  }

  #isExact(): boolean {
    if (this.index.multikey || this.conditions.incomplete) return false;
    const paths = new Set(this.index.definition.parts.map(({ path }) => path));
    return this.conditions.exact.every(
      (condition) =>
        (condition.intervals !== undefined && paths.has(condition.path)) ||
        this.#partial?.exact.some((given) => implies(given, condition)) === true,
    );
  }

  #count(ranges: readonly IndexRange[]): number {
    const counted = ranges.slice(0, COUNTED_RANGES);
    const total = counted.reduce((sum, range) => sum + this.index.tree.countIn(range), 0);
    return counted.length === ranges.length ? total : Math.ceil((total * ranges.length) / counted.length);
  }
}

function isUsable(plan: IndexPlan, sort: Document | undefined, collection: Collection): boolean {
  return plan.bounds[0] !== undefined || (sort !== undefined && plan.ordered) || plan.keys < collection.count;
}

/** The documents that a plan is expected to look at, and for a sort as much again as it takes. */
function costOf(plan: IndexPlan, fewestKeys: number, limit: number): number {
  const { keys, ordered } = plan;
  if (!ordered) return keys * (1 + Math.log2(keys + 2) / 4);
  return limit > 0 ? Math.min(keys, (limit * keys) / Math.max(1, fewestKeys)) : keys;
}

function bestOf(plans: readonly IndexPlan[], limit: number): IndexPlan | undefined {
  const fewestKeys = Math.min(...plans.map(({ keys }) => keys));
  const boundParts = ({ bounds }: IndexPlan): number => bounds.filter((each) => each !== undefined).length;
  return plans.toSorted(
    (a, b) =>
      costOf(a, fewestKeys, limit) - costOf(b, fewestKeys, limit) ||
      Number(b.ordered) - Number(a.ordered) ||
      a.keys - b.keys ||
      Number(b.exact) - Number(a.exact) ||
      boundParts(b) - boundParts(a) ||
      a.bounds.length - b.bounds.length,
  )[0];
}

function hintedIndex(collection: Collection, hint: string | Document): CollectionIndex {
  const index = collection.findIndex(hint);
  if (!index) {
    throw badValue(
      'error processing query: planner returned error :: caused by :: hint provided does not correspond to an existing index',
    );
  }
  return index;
}

function planByHint(collection: Collection, request: PlanRequest, hint: string | Document): Plan {
  if (isDocument(hint) && hint.$natural !== undefined) {
    return { kind: 'collection', backward: Number(hint.$natural) < 0, ordered: request.sort === undefined };
  }
  const index = hintedIndex(collection, hint);
  const conditions = request.collated
    ? { exact: [], loose: [], incomplete: true }
    : conditionsIn(request.filter);
  const planner = new IndexPlanner(index, conditions);
  // A sparse index may be forced, and then leaves documents out; a partial one may not.
  if (index.definition.partialFilter && !planner.isComplete) {
    throw new CommandError(
      291,
      'error processing query: planner returned error :: caused by :: hinted partial index does not hold all that the query asks for',
    );
  }
  const plan = planner.plan(request.sort);
  return request.collated ? { ...plan, ordered: request.sort === undefined } : plan;
}

function planUnion(collection: Collection, request: PlanRequest): UnionPlan | undefined {
  const { $or: clauses, ...rest } = request.filter;
  if (!Array.isArray(clauses) || clauses.length === 0) return undefined;
  const branches: IndexPlan[] = [];
  for (const clause of clauses) {
    if (!isDocument(clause)) return undefined;
    const plan = planQuery(collection, { filter: { $and: [rest, clause] } });
    if (plan.kind !== 'index') return undefined;
    branches.push(plan);
  }
  return { kind: 'union', branches, ordered: false };
}

/**
 * Chooses how to find the documents that match a filter. Since the indexes count their entries, the choice is made by
 * how many each would have to read.
 * @throws CommandError for a hint that names no index
 */
export function planQuery(collection: Collection, request: PlanRequest): Plan {
  const { filter, hint, limit = 0 } = request;
  const natural = request.sort?.$natural;
  const sort = request.sort && Object.keys(request.sort).length > 0 ? request.sort : undefined;
  if (natural !== undefined) return { kind: 'collection', backward: Number(natural) < 0, ordered: true };
  if (typeof hint === 'string' || (isDocument(hint) && Object.keys(hint).length > 0)) {
    return planByHint(collection, { ...request, sort }, hint);
  }
  const scan: CollectionPlan = { kind: 'collection', backward: false, ordered: sort === undefined };
  if (request.collated) return scan;
  const conditions = conditionsIn(filter);
  if (conditions.exact.length + conditions.loose.length === 0 && !sort && !conditions.incomplete) return scan;
  const plans = collection.indexes
    .filter(({ definition }) => !definition.hidden)
    .map((index) => new IndexPlanner(index, conditions))
    .filter((planner) => planner.isComplete)
    .map((planner) => planner.plan(sort))
    .filter((plan) => isUsable(plan, sort, collection));
  const best = bestOf(plans, limit);
  const union =
    conditions.incomplete && (!best || best.bounds[0] === undefined)
      ? planUnion(collection, request)
      : undefined;
  if (union && (!best || !best.ordered || limit === 0)) return union;
  return best ?? scan;
}

/** The plans whose entries are just those of the matching documents. */
export function exactIndexPlans(collection: Collection, filter: Document): IndexPlan[] {
  const conditions = conditionsIn(filter);
  if (conditions.incomplete) return [];
  return collection.indexes
    .filter(({ definition }) => !definition.hidden)
    .map((index) => new IndexPlanner(index, conditions))
    .filter((planner) => planner.isComplete)
    .map((planner) => planner.plan(undefined))
    .filter(({ exact }) => exact);
}
