import * as accumulators from 'mingo/operators/accumulator';
import type { Options } from 'mingo/types';
import { keyOf } from '../bson/compare';
import type { Document, NumericValue, Value } from '../bson/values';
import { double, isDocument, isNumeric, toNumber } from '../bson/values';
import { CommandError } from '../errors';
import type { Scope } from '../scope';
import type { Accumulator } from './accumulators';
import { ACCUMULATORS } from './accumulators';
import { prepare, rethrow, scopeFor } from './expression';

interface Column {
  readonly name: string;
  /** Makes what folds one column of one group, fed with the group's documents. */
  readonly start: () => { add(document: Document): void; result(): Value };
}

type GroupOperator = (items: unknown[], expression: unknown, options: Options) => unknown;

/** For accumulators that only mingo knows: they get all documents of a group at once. */
function collecting(operator: GroupOperator, expression: Value, scope: Scope): Column['start'] {
  const prepared = prepare(expression, scope.environment);
  return () => {
    const documents: Document[] = [];
    return {
      add: (document) => documents.push(document),
      result: () => {
        try {
          return operator(documents, prepared, scopeFor(scope.environment)) as Value;
        } catch (error) {
          return rethrow(error);
        }
      },
    };
  };
}

/** `$percentile` and `$median`: the least value that so large a part of the group does not exceed. */
function percentile(argument: Value, scope: Scope): Column['start'] {
  if (!isDocument(argument)) throw new CommandError(7429703, 'specification must be an object');
  const input = scope.evaluator(argument.input);
  const wanted = argument.p === undefined ? 0.5 : scope.evaluator(argument.p)({});
  const parts = Array.isArray(wanted) ? wanted : [wanted];
  if (!parts.every((part) => isNumeric(part) && toNumber(part) >= 0 && toNumber(part) <= 1)) {
    throw new CommandError(7750301, "'p' must be an array of numbers from [0.0, 1.0]");
  }
  return () => {
    const numbers: number[] = [];
    return {
      add: (document) => {
        const value = input(document);
        if (isNumeric(value)) numbers.push(toNumber(value));
      },
      result: () => {
        numbers.sort((a, b) => a - b);
        const values = parts.map((part): Value => {
          const rank = Math.max(1, Math.ceil(toNumber(part as NumericValue) * numbers.length));
          const value = numbers[rank - 1];
          return value === undefined ? null : double(value);
        });
        return Array.isArray(wanted) ? values : (values[0] ?? null);
      },
    };
  };
}

function columnOf(name: string, specification: Value, scope: Scope): Column {
  const [entry, ...others] = isDocument(specification) ? Object.entries(specification) : [];
  if (!entry || others.length > 0) {
    throw new CommandError(40234, `The field '${name}' must be an accumulator object`);
  }
  const [operator, expression] = entry;
  if (operator === '$percentile' || operator === '$median')
    return { name, start: percentile(expression, scope) };
  const make = ACCUMULATORS[operator];
  if (!make) {
    const known = (accumulators as unknown as Record<string, GroupOperator | undefined>)[operator];
    if (!known) throw new CommandError(15952, `unknown group operator '${operator}'`);
    return { name, start: collecting(known, expression, scope) };
  }
  const evaluate = operator === '$count' ? (): Value => 1 : scope.evaluator(expression);
  return {
    name,
    start: () => {
      const accumulator: Accumulator = make();
      return {
        add: (document) => accumulator.add(evaluate(document)),
        result: () => accumulator.result(),
      };
    },
  };
}

/** @param keyOfGroup what to group by; by default what the specification's `_id` says */
export function groupDocuments(
  documents: Iterable<Document>,
  specification: Value,
  scope: Scope,
  keyOfGroup?: (document: Document) => Value,
): Document[] {
  if (!isDocument(specification))
    throw new CommandError(15947, "a group's fields must be specified in an object");
  if (!('_id' in specification)) throw new CommandError(15955, 'a group specification must include an _id');
  const groupOf = keyOfGroup ?? scope.evaluator(specification._id);
  const columns = Object.entries(specification)
    .filter(([name]) => name !== '_id')
    .map(([name, each]) => columnOf(name, each, scope));
  const groups = new Map<string, { id: Value; cells: ReturnType<Column['start']>[] }>();
  for (const document of documents) {
    const id = groupOf(document) ?? null;
    const key = keyOf(id);
    let group = groups.get(key);
    if (!group) groups.set(key, (group = { id, cells: columns.map(({ start }) => start()) }));
    for (const cell of group.cells) cell.add(document);
  }
  return [...groups.values()].map(({ id, cells }) => {
    const result: Document = { _id: id };
    columns.forEach(({ name }, i) => (result[name] = cells[i]?.result()));
    return result;
  });
}
