import type { Encodable } from '../bson/encode';
import type { Document } from '../bson/values';
import { isDocument } from '../bson/values';
import { CommandError } from '../errors';
import { select } from '../query/execution';
import type { Selection } from '../query/execution';
import type { Intervals } from '../query/intervals';
import type { IndexPlan, Plan } from '../query/planner';
import { selectionOf } from '../query/selection';
import { formatValue } from '../storage/format-value';
import { namespaceOf } from '../storage/store';
import { BracketEdge } from '../bson/ranks';
import { aggregate, runnerFor } from './aggregate';
import { queryOf } from './find';
import { findAndModifyQuery } from './find-and-modify';
import type { Command, Reply, Request } from './request';
import { documentIn, documentsIn, namespaceIn, valuesIn, wholeNumberIn } from './request';

function boundText(intervals: Intervals | undefined): string[] {
  if (!intervals) return ['[MinKey, MaxKey]'];
  const shown = (value: Parameters<typeof formatValue>[0]): string =>
    value instanceof BracketEdge ? `type ${value.rank}` : formatValue(value);
  return intervals.map(
    ({ low, lowIncluded, high, highIncluded }) =>
      `${lowIncluded ? '[' : '('}${shown(low)}, ${shown(high)}${highIncluded ? ']' : ')'}`,
  );
}

function indexStage(plan: IndexPlan): Reply {
  const { name, key, parts, unique, sparse, partialFilter } = plan.index.definition;
  return {
    stage: 'IXSCAN',
    keyPattern: key,
    indexName: name,
    isMultiKey: plan.index.multikey,
    isUnique: unique,
    isSparse: sparse,
    isPartial: partialFilter !== undefined,
    indexVersion: 2,
    direction: plan.backward ? 'backward' : 'forward',
    indexBounds: Object.fromEntries(parts.map(({ path }, i) => [path, boundText(plan.bounds[i])])),
  };
}

function accessStage(plan: Plan, filter: Document): Reply {
  const withFilter = Object.keys(filter).length > 0 ? { filter } : {};
  if (plan.kind === 'collection')
    return { stage: 'COLLSCAN', ...withFilter, direction: plan.backward ? 'backward' : 'forward' };
  if (plan.kind === 'union') {
    return {
      stage: 'FETCH',
      ...withFilter,
      inputStage: { stage: 'OR', inputStages: plan.branches.map(indexStage) },
    };
  }
  return { stage: 'FETCH', ...(plan.exact ? {} : withFilter), inputStage: indexStage(plan) };
}

function winningPlan(
  { plan, skip, limit, sorter }: Selection,
  filter: Document,
  sort: Document | undefined,
): Reply {
  let stage = accessStage(plan, filter);
  if (sorter && !plan.ordered) stage = { stage: 'SORT', sortPattern: sort ?? {}, inputStage: stage };
  if (skip > 0) stage = { stage: 'SKIP', skipAmount: skip, inputStage: stage };
  if (limit > 0) stage = { stage: 'LIMIT', limitAmount: limit, inputStage: stage };
  return stage;
}

interface Explained {
  readonly selection: Selection | undefined;
  readonly filter: Document;
  readonly sort?: Document | undefined;
  /** What the command would do to the documents it finds. */
  readonly stage?: string;
}

function explainedQuery(request: Request): Explained {
  const { engine, name, body, scope, db } = request;
  const namespace = namespaceIn(request);
  const found = engine.store.find(namespace);
  const collection = found?.kind === 'collection' ? found : undefined;
  const of = (query: Parameters<typeof selectionOf>[1], stage?: string): Explained => ({
    selection: collection && selectionOf(collection, query, scope),
    filter: query.filter,
    sort: query.sort,
    ...(stage === undefined ? {} : { stage }),
  });
  switch (name) {
    case 'find':
      return of(queryOf(request));
    case 'count':
      return of({ filter: documentIn(body, 'query'), hint: body.hint }, 'COUNT');
    case 'distinct':
      return of({ filter: documentIn(body, 'query'), hint: body.hint });
    case 'findAndModify':
      return of(findAndModifyQuery(request), body.remove === true ? 'DELETE' : 'UPDATE');
    case 'update': {
      const [statement = {}] = documentsIn(body, 'updates');
      return of(
        { filter: documentIn(statement, 'q'), hint: statement.hint, limit: statement.multi === true ? 0 : 1 },
        'UPDATE',
      );
    }
    case 'delete': {
      const [statement = {}] = documentsIn(body, 'deletes');
      return of(
        {
          filter: documentIn(statement, 'q'),
          hint: statement.hint,
          limit: wholeNumberIn(statement, 'limit', 0),
        },
        'DELETE',
      );
    }
    case 'aggregate': {
      const pipeline = valuesIn(body, 'pipeline');
      const [first] = pipeline;
      const filter = isDocument(first) && isDocument(first.$match) ? first.$match : {};
      return { selection: runnerFor(request, db).selection(namespace, pipeline), filter };
    }
    default:
      throw new CommandError(59, `Explain failed due to unknown command: ${name}`);
  }
}

/** Tells how a command finds its documents; they are looked for, if that is asked, but nothing is changed. */
export const explain: Command = (request) => {
  const inner = documentIn(request.body, 'explain');
  const name = Object.keys(inner)[0] ?? '';
  const innerRequest: Request = {
    ...request,
    name: name === 'findandmodify' ? 'findAndModify' : name,
    body: inner,
  };
  const { selection, filter, sort, stage } = explainedQuery(innerRequest);
  let plan: Reply = selection ? winningPlan(selection, filter, sort) : { stage: 'EOF' };
  if (stage !== undefined) plan = { stage, inputStage: plan };
  const reply: Record<string, Encodable> = {
    explainVersion: '1',
    queryPlanner: {
      namespace: namespaceOf(namespaceIn(innerRequest)),
      indexFilterSet: false,
      parsedQuery: filter,
      winningPlan: plan,
      rejectedPlans: [],
    },
    command: inner,
    serverInfo: { host: '127.0.0.1', version: '7.0.0' },
    ok: 1,
  };
  if (request.body.verbosity !== 'queryPlanner') {
    const startedAt = performance.now();
    if (selection) for (const _record of select(selection)) request.scope.deadline.check();
    const { keysExamined = 0, docsExamined = 0, returned = 0 } = selection?.statistics ?? {};
    reply.executionStats = {
      executionSuccess: true,
      nReturned: returned,
      executionTimeMillis: Math.round(performance.now() - startedAt),
      totalKeysExamined: keysExamined,
      totalDocsExamined: docsExamined,
      executionStages: plan,
    };
  }
  return reply;
};

/** Clients of old ask an aggregation for its plan by an option of its own. */
export const aggregateOrExplain: Command = (request) => {
  const { explain: asked, ...inner } = request.body;
  if (asked !== true) return aggregate(request);
  return explain({
    ...request,
    name: 'explain',
    body: { explain: inner, verbosity: 'queryPlanner' },
  });
};
