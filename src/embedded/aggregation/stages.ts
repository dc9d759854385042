import { Lazy } from 'mingo/lazy';
import * as pipelines from 'mingo/operators/pipeline';
import type { Options } from 'mingo/types';
import type { Document, Value } from '../bson/values';
import { field, isDocument, isNumeric, toNumber } from '../bson/values';
import { CommandError, failedToParse } from '../errors';
import { withValueAt } from '../query/projection';
import { Sorter } from '../query/sort';
import { formatValue } from '../storage/format-value';
import { bucket, bucketAuto } from './buckets';
import { prepare, rethrow, scopeFor } from './expression';
import { groupDocuments } from './group';
import { lookup } from './lookup';
import type { PipelineRunner } from './pipeline';
import { compileReshape } from './reshape';
import { merge, out } from './write-stages';

type Stage = (documents: Iterable<Document>, argument: Value, runner: PipelineRunner) => Iterable<Document>;

function* filtered(
  documents: Iterable<Document>,
  argument: Value,
  { scope }: PipelineRunner,
): Generator<Document> {
  if (!isDocument(argument))
    throw new CommandError(15959, 'the match filter must be an expression in an object');
  const test = scope.test(argument);
  for (const document of documents) {
    scope.deadline.check();
    if (test(document)) yield document;
  }
}

export function amountOf(argument: Value, name: string): number {
  const amount = isNumeric(argument) ? toNumber(argument) : NaN;
  if (!Number.isInteger(amount) || amount < 0) {
    throw new CommandError(5107200, `invalid argument to ${name} stage: Expected a non-negative number`);
  }
  return amount;
}

function* limited(documents: Iterable<Document>, argument: Value): Generator<Document> {
  const limit = amountOf(argument, '$limit');
  if (limit === 0) throw new CommandError(15958, 'the limit must be positive');
  let count = 0;
  for (const document of documents) {
    yield document;
    if (++count >= limit) return;
  }
}

function* skipped(documents: Iterable<Document>, argument: Value): Generator<Document> {
  let left = amountOf(argument, '$skip');
  for (const document of documents) {
    if (left > 0) left--;
    else yield document;
  }
}

function sorted(documents: Iterable<Document>, argument: Value, { scope }: PipelineRunner): Document[] {
  if (!isDocument(argument)) throw new CommandError(15973, 'the $sort key specification must be an object');
  if (Object.keys(argument).length === 0)
    throw new CommandError(15976, '$sort stage must have at least one sort key');
  return new Sorter(argument, scope.strings).sort(documents, (document) => document);
}

function* unwound(documents: Iterable<Document>, argument: Value): Generator<Document> {
  const options: Document = isDocument(argument) ? argument : { path: argument };
  const { path, includeArrayIndex, preserveNullAndEmptyArrays } = options;
  if (typeof path !== 'string' || !path.startsWith('$')) {
    throw new CommandError(
      28818,
      `path option to $unwind stage should be prefixed with a '$': ${formatValue(path)}`,
    );
  }
  const parts = path.slice(1).split('.');
  const withIndex = (document: Document, index: Value): Document =>
    typeof includeArrayIndex === 'string'
      ? withValueAt(document, includeArrayIndex.split('.'), index)
      : document;
  for (const document of documents) {
    let value: Value = document;
    for (const part of parts) value = isDocument(value) ? field(value, part) : undefined;
    if (Array.isArray(value) && value.length > 0) {
      for (const [i, each] of value.entries()) yield withIndex(withValueAt(document, parts, each), BigInt(i));
    } else if (value !== undefined && value !== null && !Array.isArray(value)) {
      yield withIndex(document, null);
    } else if (preserveNullAndEmptyArrays === true) {
      yield withIndex(Array.isArray(value) ? withValueAt(document, parts, undefined) : document, null);
    }
  }
}

function facet(documents: Iterable<Document>, argument: Value, runner: PipelineRunner): Document[] {
  if (!isDocument(argument) || Object.keys(argument).length === 0) {
    throw new CommandError(40169, 'the $facet specification must be a non-empty object');
  }
  const input = [...documents];
  const outputs = Object.entries(argument).map(([name, pipeline]): [string, Value] => {
    if (!Array.isArray(pipeline))
      throw new CommandError(40170, `arguments to $facet must be arrays, ${name} is not`);
    return [name, [...runner.apply(input, pipeline)]];
  });
  return [Object.fromEntries(outputs)];
}

function* united(
  documents: Iterable<Document>,
  argument: Value,
  runner: PipelineRunner,
): Generator<Document> {
  yield* documents;
  const { coll, pipeline = [] } = isDocument(argument) ? argument : { coll: argument };
  if (!Array.isArray(pipeline)) throw failedToParse('$unionWith pipeline must be an array');
  yield* runner.run(coll === undefined ? undefined : runner.namespaceOf(coll), pipeline);
}

function sampled(documents: Iterable<Document>, argument: Value): Document[] {
  const size = isDocument(argument) && isNumeric(argument.size) ? toNumber(argument.size) : -1;
  if (size < 0) throw new CommandError(28746, 'size argument to $sample must be a non-negative number');
  const kept: Document[] = [];
  let seen = 0;
  for (const document of documents) {
    seen++;
    if (kept.length < size) kept.push(document);
    else {
      const place = Math.floor(Math.random() * seen);
      if (place < size) kept[place] = document;
    }
  }
  return kept;
}

function counted(documents: Iterable<Document>, argument: Value): Document[] {
  if (typeof argument !== 'string' || argument === '' || argument.startsWith('$') || argument.includes('.')) {
    throw new CommandError(40156, 'the count field must be a non-empty string');
  }
  let count = 0;
  for (const _document of documents) count++;
  return count === 0 ? [] : [{ [argument]: count }];
}

function graphLookup(
  documents: Iterable<Document>,
  argument: Value,
  runner: PipelineRunner,
): Iterable<Document> {
  if (!isDocument(argument)) throw failedToParse('the $graphLookup specification must be an object');
  const from = [...runner.run(runner.namespaceOf(argument.from), [])];
  return byMingo('$graphLookup', { ...argument, from: [] }, from)(documents, argument, runner);
}

type MingoStage = (items: ReturnType<typeof Lazy>, argument: unknown, options: Options) => Iterable<unknown>;

/** The stages that are mingo's as they are. */
function byMingo(name: string, fixed?: Document, from?: Document[]): Stage {
  const operator = (pipelines as unknown as Record<string, MingoStage | undefined>)[name];
  return (documents, argument, { scope }) => {
    const prepared = prepare(fixed ?? argument, scope.environment) as Record<string, unknown>;
    const options = scopeFor(scope.environment);
    try {
      const results =
        operator?.(Lazy([...documents]), from ? { ...prepared, from } : prepared, options) ?? [];
      return [...results] as Document[];
    } catch (error) {
      return rethrow(error);
    }
  };
}

const STAGES: Readonly<Record<string, Stage>> = {
  $match: filtered,
  $limit: limited,
  $skip: skipped,
  $sort: sorted,
  $group: (documents, argument, { scope }) => groupDocuments(documents, argument, scope),
  $sortByCount: (documents, argument, runner) =>
    sorted(
      groupDocuments(documents, { _id: argument, count: { $sum: 1 } }, runner.scope),
      { count: -1 },
      runner,
    ),
  $unwind: unwound,
  $count: counted,
  $facet: facet,
  $lookup: lookup,
  $unionWith: united,
  $sample: sampled,
  $graphLookup: graphLookup,
  $bucket: (documents, argument, { scope }) => bucket(documents, argument, scope),
  $bucketAuto: (documents, argument, { scope }) => bucketAuto(documents, argument, scope),
  $setWindowFields: byMingo('$setWindowFields'),
  $densify: byMingo('$densify'),
  $fill: byMingo('$fill'),
  $redact: byMingo('$redact'),
  $out: (documents, argument, runner) => {
    out(documents, argument, runner);
    return [];
  },
  $merge: (documents, argument, runner) => {
    merge(documents, argument, runner);
    return [];
  },
};

export function stageEntry(stage: Value): [string, Value] {
  const entries = isDocument(stage) ? Object.entries(stage) : [];
  const [entry] = entries;
  if (!entry || entries.length !== 1) {
    throw new CommandError(40323, 'A pipeline stage specification object must contain exactly one field.');
  }
  return entry;
}

/** @throws CommandError for a stage that isn't one */
export function applyStage(
  documents: Iterable<Document>,
  stage: Value,
  runner: PipelineRunner,
): Iterable<Document> {
  const [name, argument] = stageEntry(stage);
  const reshape = compileReshape(name, argument, runner.scope);
  if (reshape) return reshaped(documents, reshape, runner);
  const apply = STAGES[name];
  if (name === '$changeStream')
    throw new CommandError(40573, 'The $changeStream stage is only supported on replica sets');
  if (!apply) throw new CommandError(40324, `Unrecognized pipeline stage name: '${name}'`);
  return apply(documents, argument, runner);
}

function* reshaped(
  documents: Iterable<Document>,
  reshape: (document: Document) => Document,
  { scope }: PipelineRunner,
): Generator<Document> {
  for (const document of documents) {
    scope.deadline.check();
    yield reshape(document);
  }
}
