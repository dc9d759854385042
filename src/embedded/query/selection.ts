import type { Document, Value } from '../bson/values';
import type { Selection } from './execution';
import { newStatistics } from './execution';
import { planQuery } from './planner';
import { Sorter } from './sort';
import type { Scope } from '../scope';
import type { Collection } from '../storage/collection';

export interface Query {
  readonly filter: Document;
  readonly sort?: Document | undefined;
  readonly skip?: number;
  /** 0 for no limit. */
  readonly limit?: number;
  readonly hint?: Value;
}

/** Plans a query over a collection. */
export function selectionOf(collection: Collection, query: Query, scope: Scope): Selection {
  const { filter, sort, hint, skip = 0, limit = 0 } = query;
  const test = scope.test(filter);
  const sorts = sort !== undefined && Object.keys(sort).length > 0 && sort.$natural === undefined;
  return {
    collection,
    plan: planQuery(collection, {
      filter,
      sort,
      hint,
      limit: limit > 0 ? skip + limit : 0,
      collated: scope.strings !== undefined,
    }),
    test,
    sorter: sorts ? new Sorter(sort, scope.strings) : undefined,
    skip,
    limit,
    statistics: newStatistics(),
    deadline: scope.deadline,
  };
}
