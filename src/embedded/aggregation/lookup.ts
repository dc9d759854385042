import { keyOf } from '../bson/compare';
import type { Document, Value } from '../bson/values';
import { isDocument } from '../bson/values';
import { CommandError, failedToParse } from '../errors';
import { valuesAt } from '../query/path';
import { withValueAt } from '../query/projection';
import type { Namespace } from '../storage/store';
import type { PipelineRunner } from './pipeline';

const keysAt = (document: Document, path: string): string[] => {
  const values = valuesAt(document, path);
  return (values.length === 0 ? [null] : values).map(keyOf);
};

/** The documents of another collection by the values they have at a path. */
function tabulate(documents: Iterable<Document>, path: string): Map<string, Document[]> {
  const table = new Map<string, Document[]>();
  for (const document of documents) {
    for (const key of new Set(keysAt(document, path))) {
      const found = table.get(key);
      if (found) found.push(document);
      else table.set(key, [document]);
    }
  }
  return table;
}

/** Finds the documents that belong to one. */
type Partners = (document: Document) => Iterable<Document>;

function byFields(
  runner: PipelineRunner,
  from: Namespace,
  localField: string,
  foreignField: string,
): Partners {
  const collection = runner.collectionAt(from);
  const indexed = collection?.indexes.some(
    ({ definition: { parts, sparse, partialFilter } }) =>
      parts[0]?.path === foreignField && !sparse && !partialFilter,
  );
  if (indexed === true) {
    return (document) => {
      const values: Value[] = valuesAt(document, localField);
      return runner.run(from, [
        { $match: { [foreignField]: { $in: values.length === 0 ? [null] : values } } },
      ]);
    };
  }
  let table: Map<string, Document[]> | undefined;
  return (document) => {
    table ??= tabulate(runner.run(from, []), foreignField);
    const found = new Set<Document>();
    for (const key of new Set(keysAt(document, localField))) {
      for (const each of table.get(key) ?? []) found.add(each);
    }
    return found;
  };
}

function byPipeline(
  runner: PipelineRunner,
  from: Namespace | undefined,
  pipeline: Value,
  variables: Document,
): Partners {
  if (!Array.isArray(pipeline)) throw failedToParse('$lookup argument pipeline must be an array');
  const computed = Object.entries(variables).map(
    ([name, each]) => [name, runner.scope.evaluator(each)] as const,
  );
  return (document) => {
    const values = Object.fromEntries(computed.map(([name, evaluate]) => [name, evaluate(document) ?? null]));
    return runner.withVariables(values).run(from, pipeline);
  };
}

export function* lookup(
  documents: Iterable<Document>,
  argument: Value,
  runner: PipelineRunner,
): Generator<Document> {
  if (!isDocument(argument)) throw failedToParse('the $lookup specification must be an object');
  const { from, as, localField, foreignField, pipeline, let: variables = {} } = argument;
  if (typeof as !== 'string') throw failedToParse("must specify 'as' field for a $lookup");
  const source = from === undefined ? undefined : runner.namespaceOf(from);
  const joins = typeof localField === 'string' && typeof foreignField === 'string' && source;
  if (!joins && pipeline === undefined)
    throw new CommandError(
      9,
      "$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified",
    );
  const partners = joins ? byFields(runner, source, localField, foreignField) : undefined;
  const piped =
    pipeline === undefined
      ? undefined
      : byPipeline(runner, source, pipeline, isDocument(variables) ? variables : {});
  for (const document of documents) {
    runner.scope.deadline.check();
    let found: Document[];
    if (!partners) {
      found = piped ? [...piped(document)] : [];
    } else {
      found = [...partners(document)];
      if (pipeline !== undefined && isDocument(variables))
        found = runner.pass(found, pipeline, variables, document);
    }
    yield withValueAt(document, as.split('.'), found);
  }
}
