import { compareValues } from '../bson/compare';
import type { Document, Value } from '../bson/values';
import { at, isDocument, isNumeric, toNumber } from '../bson/values';
import { badValue, CommandError } from '../errors';
import type { Scope } from '../scope';
import { groupDocuments } from './group';

const COUNT: Document = { count: { $sum: 1 } };

const outputOf = ({ output }: Document): Document => (isDocument(output) ? output : COUNT);

/** `$bucket`: groups between given boundaries, each with its lower one and without its upper one. */
export function bucket(documents: Iterable<Document>, argument: Value, scope: Scope): Document[] {
  if (!isDocument(argument)) throw new CommandError(40201, 'Argument to $bucket stage must be an object');
  const { groupBy, boundaries, default: otherwise } = argument;
  if (!Array.isArray(boundaries) || boundaries.length < 2) {
    throw new CommandError(40191, "The $bucket 'boundaries' field must be an array of at least 2 values");
  }
  const limits = boundaries.map((each) => scope.evaluator(each)({}));
  if (limits.some((limit, i) => i > 0 && compareValues(limits[i - 1], limit) >= 0)) {
    throw new CommandError(40194, "The 'boundaries' option to $bucket must be sorted in ascending order");
  }
  const valueOf = scope.evaluator(groupBy);
  const bucketOf = (document: Document): Value => {
    const value = valueOf(document) ?? null;
    const next = limits.findIndex((limit) => compareValues(value, limit) < 0);
    if (next > 0) return limits[next - 1];
    if (otherwise !== undefined) return otherwise;
    throw new CommandError(
      40066,
      '$switch could not find a matching branch for an input, and no default was specified.',
    );
  };
  const groups = groupDocuments(documents, { _id: null, ...outputOf(argument) }, scope, bucketOf);
  return groups.sort((a, b) => compareValues(a._id, b._id));
}

/** `$bucketAuto`: groups of about one size, by the order of a value; equal values stay together. */
export function bucketAuto(documents: Iterable<Document>, argument: Value, scope: Scope): Document[] {
  if (!isDocument(argument)) throw new CommandError(40240, 'The argument to $bucketAuto must be an object');
  const { groupBy, buckets, granularity } = argument;
  const count = isNumeric(buckets) ? toNumber(buckets) : 0;
  if (!Number.isInteger(count) || count <= 0)
    throw new CommandError(40243, "The $bucketAuto 'buckets' field must be greater than 0");
  if (granularity !== undefined) throw badValue('$bucketAuto with a granularity is not supported here');
  const valueOf = scope.evaluator(groupBy);
  const sorted = [...documents]
    .map((document) => ({ document, value: valueOf(document) ?? null }))
    .sort((a, b) => compareValues(a.value, b.value));
  const bucketOf = new Map<Document, number>();
  const starts: Value[] = [];
  const size = Math.max(1, Math.round(sorted.length / count));
  let filled = 0;
  sorted.forEach(({ document, value }, i) => {
    const isNew = i === 0 || compareValues(at(sorted, i - 1).value, value) !== 0;
    if (i === 0 || (filled >= size && isNew && starts.length < count)) {
      starts.push(value);
      filled = 0;
    }
    filled++;
    bucketOf.set(document, starts.length - 1);
  });
  const groups = groupDocuments(bucketOf.keys(), { _id: null, ...outputOf(argument) }, scope, (document) =>
    bucketOf.get(document),
  );
  return groups.map((group, i) => ({
    ...group,
    _id: { min: starts[i], max: starts[i + 1] ?? sorted.at(-1)?.value },
  }));
}
