import type { Document, Value } from '../bson/values';
import { isDocument } from '../bson/values';
import { badValue, CommandError, failedToParse } from '../errors';
import { selectionOf } from '../query/selection';
import type { Query } from '../query/selection';
import { countMatching, indexedGroups } from '../query/counting';
import type { Selection } from '../query/execution';
import { select } from '../query/execution';
import type { Scope } from '../scope';
import type { Collection } from '../storage/collection';
import type { Namespace, Store } from '../storage/store';
import { amountOf, applyStage, stageEntry } from './stages';

/** What a pipeline starts from when it has no collection, such as `$currentOp` or `$documents`. */
export type Source = (
  name: string,
  argument: Value,
  namespace: Namespace | undefined,
) => Iterable<Document> | undefined;

function* documentsOf(selection: Selection): Generator<Document> {
  for (const { document } of select(selection)) yield document;
}

/** The start of a pipeline that a query can answer, and the stages after it. */
function splitQuery(pipeline: readonly Value[]): { query: Query; rest: Value[] } {
  const filters: Document[] = [];
  let sort: Document | undefined;
  let [skip, limit] = [0, 0];
  let used = 0;
  for (const stage of pipeline) {
    const [name, argument] = stageEntry(stage);
    if (name === '$match' && isDocument(argument) && !sort && skip === 0 && limit === 0)
      filters.push(argument);
    else if (
      name === '$sort' &&
      isDocument(argument) &&
      Object.keys(argument).length > 0 &&
      !sort &&
      skip === 0 &&
      limit === 0
    )
      sort = argument;
    else if (name === '$skip' && skip === 0 && limit === 0) skip = amountOf(argument, name);
    else if (name === '$limit' && limit === 0) limit = amountOf(argument, name);
    else break;
    if (name === '$limit' && limit === 0) throw new CommandError(15958, 'the limit must be positive');
    used++;
  }
  const [only, ...others] = filters;
  const filter = others.length > 0 ? { $and: filters } : (only ?? {});
  return { query: { filter, sort, skip, limit }, rest: pipeline.slice(used) };
}

/** The names of a `$group` that only counts, and what it groups by: a path, or nothing. */
function countingGroup(stage: Value): { path: string | undefined; id: Value; names: string[] } | undefined {
  if (!isDocument(stage) || !isDocument(stage.$group)) return undefined;
  const { _id: id, ...columns } = stage.$group;
  const names = Object.keys(columns);
  const counts = Object.values(columns).every(
    (column) =>
      isDocument(column) &&
      Object.keys(column).length === 1 &&
      (column.$sum === 1 || isDocument(column.$count)),
  );
  if (!counts) return undefined;
  if (typeof id === 'string' && /^\$[^$]/.test(id)) return { path: id.slice(1), id, names };
  return id === null || typeof id === 'number' ? { path: undefined, id, names } : undefined;
}

export class PipelineRunner {
  constructor(
    readonly store: Store,
    readonly db: string,
    readonly scope: Scope,
    readonly source: Source,
    readonly hint?: Value,
  ) {}

  withVariables(variables: Document): PipelineRunner {
    return new PipelineRunner(this.store, this.db, this.scope.withVariables(variables), this.source);
  }

  /** The collection that a stage's `from`, `coll` and the like name. */
  namespaceOf(name: Value): Namespace {
    if (typeof name === 'string') return { db: this.db, collection: name };
    if (isDocument(name) && typeof name.coll === 'string') {
      return { db: typeof name.db === 'string' ? name.db : this.db, collection: name.coll };
    }
    throw failedToParse('a stage must name a collection with a string');
  }

  collectionAt(namespace: Namespace): Collection | undefined {
    const found = this.store.find(namespace);
    return found?.kind === 'collection' ? found : undefined;
  }

  /** Plans the part of a pipeline that a query answers. Undefined where there is no collection to query. */
  selection(namespace: Namespace, pipeline: readonly Value[]): Selection | undefined {
    const collection = this.collectionAt(namespace);
    return (
      collection && selectionOf(collection, { ...splitQuery(pipeline).query, hint: this.hint }, this.scope)
    );
  }

  run(namespace: Namespace | undefined, pipeline: readonly Value[]): Iterable<Document> {
    const [first] = pipeline;
    if (first !== undefined) {
      const [name, argument] = stageEntry(first);
      const given = this.source(name, argument, namespace);
      if (given) return this.apply(given, pipeline.slice(1));
    }
    if (!namespace)
      throw new CommandError(
        73,
        `{aggregate: 1} is not valid for '${first === undefined ? 'an empty pipeline' : stageEntry(first)[0]}'; a collection is required.`,
      );
    const found = this.store.find(namespace);
    if (found?.kind === 'view') {
      return this.run({ db: namespace.db, collection: found.viewOn }, [...found.pipeline, ...pipeline]);
    }
    const { query, rest } = splitQuery(pipeline);
    if (!found) {
      this.scope.test(query.filter);
      return this.apply([], rest);
    }
    const counted = this.#countByIndex(found, query, rest);
    if (counted) return this.apply(counted, rest.slice(1));
    return this.apply(documentsOf(selectionOf(found, { ...query, hint: this.hint }, this.scope)), rest);
  }

  apply(documents: Iterable<Document>, pipeline: readonly Value[]): Iterable<Document> {
    pipeline.forEach((stage, i) => {
      const [name] = stageEntry(stage);
      if ((name === '$out' || name === '$merge') && i < pipeline.length - 1) {
        throw new CommandError(40601, `${name} can only be the final stage in the pipeline`);
      }
    });
    return pipeline.reduce<Iterable<Document>>((each, stage) => applyStage(each, stage, this), documents);
  }

  /** Documents through a pipeline that knows the values of `variables` for `document`. */
  pass(documents: Document[], pipeline: Value, variables: Document, document: Document): Document[] {
    if (!Array.isArray(pipeline)) throw badValue('a pipeline must be an array');
    const values = Object.entries(variables).map(([name, each]) => [
      name,
      this.scope.evaluator(each)(document) ?? null,
    ]);
    return [...this.withVariables(Object.fromEntries(values) as Document).apply(documents, pipeline)];
  }

  /** A count for each value, where an index tells it without reading the documents. */
  #countByIndex(collection: Collection, query: Query, rest: readonly Value[]): Document[] | undefined {
    const group = countingGroup(rest[0]);
    const { filter, sort, skip = 0, limit = 0 } = query;
    if (!group || sort || skip > 0 || limit > 0 || this.scope.strings || this.hint !== undefined)
      return undefined;
    const row = (id: Value, count: number): Document => ({
      _id: id,
      ...Object.fromEntries(group.names.map((name) => [name, count])),
    });
    if (group.path === undefined) {
      const count = countMatching(selectionOf(collection, query, this.scope), filter);
      return count === 0 ? [] : [row(group.id, count)];
    }
    return indexedGroups(collection, filter, group.path)?.map(({ value, count }) => row(value, count));
  }
}
