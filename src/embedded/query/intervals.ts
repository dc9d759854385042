import { BSONRegExp, MaxKey, MinKey } from 'mongodb';
import { compareValues } from '../bson/compare';
import { BracketEdge, RANK } from '../bson/ranks';
import type { Document, Value } from '../bson/values';
import { isDocument, isNumeric, rankOf, toNumber } from '../bson/values';
import { isOperatorDocument } from './filter';

/** Values between two ends in BSON order. */
export interface Interval {
  readonly low: Value;
  readonly lowIncluded: boolean;
  readonly high: Value;
  readonly highIncluded: boolean;
}

/** Sorted, without overlaps. */
export type Intervals = readonly Interval[];

/** One condition of a filter that has to hold, in a form that the planner can reason about. */
export interface Condition {
  readonly path: string;
  /** The values that satisfy it; exactly these, as long as no array is at the path. Undefined when they can't be told. */
  readonly intervals: Intervals | undefined;
  /** It can't hold for a missing field. */
  readonly needsField: boolean;
  readonly operator: string;
  readonly argument: Value;
}

export const point = (value: Value): Interval => ({
  low: value,
  lowIncluded: true,
  high: value,
  highIncluded: true,
});

export function isPoint({ low, high }: Interval): boolean {
  return compareValues(low, high) === 0;
}

const isIndexable = (value: Value): boolean => !Array.isArray(value) && !(value instanceof BSONRegExp);

const isNaNValue = (value: Value): boolean => isNumeric(value) && Number.isNaN(toNumber(value));

function rangeOf(operator: string, value: Value): Intervals | undefined {
  if (!isIndexable(value) || isNaNValue(value)) return undefined;
  const rank = rankOf(value);
  if (rank === RANK.null) return operator === '$gte' || operator === '$lte' ? [point(null)] : [];
  const open = rank === RANK.minKey || rank === RANK.maxKey;
  const bottom = open ? new MinKey() : rank === RANK.number ? -Infinity : BracketEdge.before(rank);
  const top = open ? new MaxKey() : BracketEdge.after(rank);
  if (operator === '$gt' || operator === '$gte') {
    return [{ low: value, lowIncluded: operator === '$gte', high: top, highIncluded: true }];
  }
  return [{ low: bottom, lowIncluded: true, high: value, highIncluded: operator === '$lte' }];
}

function pointsOf(values: Value): Intervals | undefined {
  if (!Array.isArray(values) || !values.every(isIndexable)) return undefined;
  const sorted = values.map((value) => value ?? null).sort((a, b) => compareValues(a, b));
  return sorted.filter((value, i) => i === 0 || compareValues(sorted[i - 1], value) !== 0).map(point);
}

function literalPrefix(pattern: string): string {
  return /^\^((?:[^\\.*+?()[\]{}|^$#\s]|\\[./-])+)(?![*?{|])/.exec(pattern)?.[1]?.replaceAll('\\', '') ?? '';
}

function patternRange(pattern: string, options: string): Intervals | undefined {
  const prefix = options === '' && !pattern.includes('|') ? literalPrefix(pattern) : '';
  if (prefix === '') return undefined;
  return [{ low: prefix, lowIncluded: true, high: `${prefix}\u{10ffff}`, highIncluded: true }];
}

function conditionsOf(path: string, operator: string, value: Value, siblings: Document): Condition {
  const at = (intervals: Intervals | undefined, needsField: boolean): Condition => ({
    path,
    intervals,
    needsField,
    operator,
    argument: value,
  });
  switch (operator) {
    case '$eq':
      return at(isIndexable(value) ? [point(value ?? null)] : undefined, value !== null);
    case '$in':
      return at(pointsOf(value), Array.isArray(value) && !value.includes(null));
    case '$gt':
    case '$gte':
    case '$lt':
    case '$lte':
      return at(rangeOf(operator, value), value !== null);
    case '$exists':
      return at(undefined, value === true || (isNumeric(value) && toNumber(value) !== 0));
    default:
      return at(
        undefined,
        ['$type', '$regex', '$elemMatch', '$size', '$mod', '$all'].includes(operator) || '$regex' in siblings,
      );
  }
}

/** Bounds that hold no less than what matches, for a condition whose values can't be told exactly. */
export interface LooseBounds {
  readonly path: string;
  readonly intervals: Intervals;
}

export interface Conditions {
  readonly exact: readonly Condition[];
  readonly loose: readonly LooseBounds[];
  /** Something in the filter, such as `$or` or `$expr`, is in none of the conditions. */
  readonly incomplete: boolean;
}

/** Takes a filter apart into the conditions that all have to hold. */
export function conditionsIn(filter: Document): Conditions {
  const exact: Condition[] = [];
  const loose: LooseBounds[] = [];
  let incomplete = false;
  const visit = (part: Document): void => {
    for (const [name, value] of Object.entries(part)) {
      if (name === '$and' && Array.isArray(value)) {
        for (const clause of value) if (isDocument(clause)) visit(clause);
      } else if (name.startsWith('$')) {
        incomplete ||= name !== '$comment';
      } else if (isOperatorDocument(value)) {
        for (const [operator, argument] of Object.entries(value)) {
          exact.push(conditionsOf(name, operator, argument, value));
        }
        if (typeof value.$regex === 'string')
          pushLoose(
            name,
            patternRange(value.$regex, typeof value.$options === 'string' ? value.$options : ''),
          );
      } else {
        exact.push(conditionsOf(name, '$eq', value, {}));
        if (value instanceof BSONRegExp) pushLoose(name, patternRange(value.pattern, value.options));
      }
    }
  };
  const pushLoose = (path: string, intervals: Intervals | undefined): void => {
    if (intervals) loose.push({ path, intervals });
  };
  visit(filter);
  return { exact, loose, incomplete };
}

function isBelow(a: Interval, b: Interval): boolean {
  const order = compareValues(a.high, b.low);
  return order < 0 || (order === 0 && !(a.highIncluded && b.lowIncluded));
}

export function intersect(xs: Intervals, ys: Intervals): Intervals {
  const both: Interval[] = [];
  let [i, j] = [0, 0];
  for (let x = xs[i], y = ys[j]; x && y; x = xs[i], y = ys[j]) {
    if (isBelow(x, y)) i++;
    else if (isBelow(y, x)) j++;
    else {
      const low = laterStart(x, y);
      const high = earlierEnd(x, y);
      both.push({
        low: low.low,
        lowIncluded: low.lowIncluded,
        high: high.high,
        highIncluded: high.highIncluded,
      });
      if (high === x) i++;
      else j++;
    }
  }
  return both;
}

function laterStart(x: Interval, y: Interval): Interval {
  const order = compareValues(x.low, y.low);
  return order > 0 || (order === 0 && !x.lowIncluded) ? x : y;
}

function earlierEnd(x: Interval, y: Interval): Interval {
  const order = compareValues(x.high, y.high);
  return order < 0 || (order === 0 && !x.highIncluded) ? x : y;
}

function holds(outer: Interval, inner: Interval): boolean {
  const low = compareValues(outer.low, inner.low);
  const high = compareValues(outer.high, inner.high);
  return (
    (low < 0 || (low === 0 && (outer.lowIncluded || !inner.lowIncluded))) &&
    (high > 0 || (high === 0 && (outer.highIncluded || !inner.highIncluded)))
  );
}

/** Every value of `inner` is one of `outer`. */
export function includes(outer: Intervals, inner: Intervals): boolean {
  return inner.every((each) => outer.some((interval) => holds(interval, each)));
}

export function contains(intervals: Intervals, value: Value): boolean {
  return includes(intervals, [point(value)]);
}
