import { BSONRegExp } from 'mongodb';
import { Context, evalExpr, ProcessingMode } from 'mingo/core';
import * as accumulators from 'mingo/operators/accumulator';
import * as expressions from 'mingo/operators/expression';
import * as pipelines from 'mingo/operators/pipeline';
import * as projections from 'mingo/operators/projection';
import * as queries from 'mingo/operators/query';
import * as windows from 'mingo/operators/window';
import type { AnyObject, Options } from 'mingo/types';
import { MingoError } from 'mingo/util';
import type { Document, Value } from '../bson/values';
import { isDocument, isNumeric, toNumber } from '../bson/values';
import { badValue, CommandError } from '../errors';
import { toRegExp } from '../query/operators';
import { ACCUMULATORS } from './accumulators';
import type { EvaluationScope, Operator } from './typed-operators';
import { accumulate, TYPED_OPERATORS } from './typed-operators';

export type Evaluate = (document: Document) => Value;

/** What expressions of one command have in common. */
export interface Environment {
  /** `$$NOW`, which doesn't move while a command runs. */
  readonly now: Date;
  /** The variables of `let`. */
  readonly variables: Document;
}

/** They decide themselves which of their arguments to evaluate, or only move values about. */
const TAKES_EXPRESSIONS = new Set([
  '$ifNull', '$map', '$filter', '$reduce', '$let', '$literal', '$getField', '$setField', '$unsetField',
  '$mergeObjects', '$arrayToObject', '$objectToArray', '$concatArrays', '$reverseArray', '$zip', '$first', '$last',
  '$setUnion', '$setIntersection', '$setDifference', '$setEquals', '$setIsSubset', '$anyElementTrue', '$allElementsTrue',
  '$isArray', '$size', '$function',
]); // prettier-ignore

function plain(value: Value): Value {
  if (isNumeric(value)) return toNumber(value);
  return Array.isArray(value) ? value.map(plain) : value;
}

/** Operators of one argument, which may be given as a list of one. */
const UNARY = new Set([
  '$reverseArray', '$objectToArray', '$arrayToObject', '$toUpper', '$toLower',
  '$strLenCP', '$strLenBytes', '$sqrt', '$exp', '$ln', '$log10', '$year', '$month', '$dayOfMonth', '$dayOfWeek', '$dayOfYear',
  '$hour', '$minute', '$second', '$millisecond', '$week', '$isoWeek', '$isoWeekYear', '$isoDayOfWeek', '$first', '$last',
]); // prettier-ignore

function unwrapped(operator: Operator): Operator {
  return (object, expression, options) =>
    operator(
      object,
      Array.isArray(expression) && expression.length === 1 ? (expression[0] as unknown) : expression,
      options,
    );
}

const withFirstDay =
  (operator: Operator): Operator =>
  (object, expression, options) =>
    operator(object, isDocument(expression) ? { month: 1, day: 1, ...expression } : expression, options);

function adapt(name: string, operator: Operator): Operator {
  if (name === '$dateFromParts') return withFirstDay(withPlainNumbers(operator));
  const adapted = TAKES_EXPRESSIONS.has(name) ? operator : withPlainNumbers(operator);
  return UNARY.has(name) ? unwrapped(adapted) : adapted;
}

/** Gives an operator of mingo's its arguments evaluated and with plain numbers, the only ones it can reckon with. */
function withPlainNumbers(operator: Operator): Operator {
  return (object, expression, options) => {
    const evaluated = (each: unknown): unknown => ({
      $literal: plain(evalExpr(object, each, options) as Value),
    });
    if (Array.isArray(expression)) return operator(object, expression.map(evaluated), options);
    if (isDocument(expression) && Object.keys(expression).some((name) => !name.startsWith('$'))) {
      const evaluatedFields = Object.entries(expression).map(([name, each]) => [name, evaluated(each)]);
      return operator(object, Object.fromEntries(evaluatedFields), options);
    }
    return operator(object, evaluated(expression), options);
  };
}

const named = (operators: object): [string, Operator][] => Object.entries(operators) as [string, Operator][];

const operators: AnyObject = {
  expression: {
    ...Object.fromEntries(named(expressions).map(([name, operator]) => [name, adapt(name, operator)])),
    ...TYPED_OPERATORS,
  },
  accumulator: {
    ...accumulators,
    ...Object.fromEntries(
      Object.keys(ACCUMULATORS).map((name) => [
        name,
        (items: unknown[], expression: unknown, options: Options): Value =>
          accumulate(name, items, expression, options),
      ]),
    ),
  },
  pipeline: pipelines,
  projection: projections,
  query: queries,
  window: windows,
};

const context = Context.init({
  ...operators,
  expression: {
    ...(operators.expression as Record<string, Operator>),
    /** Hands out the scope that mingo made. */
    $scope: (_object: unknown, _expression: unknown, options: Options) => options,
  },
});

const KNOWN_OPERATORS = new Set([
  ...Object.keys(expressions),
  ...Object.keys(TYPED_OPERATORS),
  ...Object.keys(accumulators),
]);
const WITH_NAMES_OF_THEIR_OWN = new Set(['$merge', '$out']);

/** Puts in what mingo would take from elsewhere or not know: the time, patterns, and a refusal of unknown operators. */
export function prepare(expression: Value, environment: Environment): unknown {
  if (expression === '$$NOW') return environment.now;
  if (expression === '$$CLUSTER_TIME') throw badValue('Builtin variable $$CLUSTER_TIME is not available');
  if (expression instanceof BSONRegExp) return toRegExp(expression.pattern, expression.options);
  if (Array.isArray(expression)) return expression.map((each) => prepare(each, environment));
  if (!isDocument(expression)) return expression;
  const entries = Object.entries(expression);
  const [first] = entries;
  if (first?.[0] === '$literal') return expression;
  if (
    first?.[0].startsWith('$') &&
    !KNOWN_OPERATORS.has(first[0]) &&
    !WITH_NAMES_OF_THEIR_OWN.has(first[0])
  ) {
    throw new CommandError(168, `Unrecognized expression '${first[0]}'`);
  }
  return Object.fromEntries(entries.map(([name, each]) => [name, prepare(each, environment)]));
}

interface ScopeClass {
  init(options: Options): EvaluationScope;
}

/** Made once: to make one of plain options, mingo copies its whole table of operators. */
const rootScope = evalExpr({}, { $scope: 1 }, {
  idKey: '_id',
  processingMode: ProcessingMode.CLONE_OFF,
  useStrictMode: true,
  // What mingo makes $setWindowFields of; it runs no code that comes from a client.
  scriptEnabled: true,
  failOnError: true,
  context,
} satisfies Options) as EvaluationScope;

export function scopeFor({ variables }: Environment): EvaluationScope {
  return (rootScope.constructor as unknown as ScopeClass)
    .init(rootScope)
    .update({ root: undefined, variables });
}

/** What mingo refuses is the client's mistake. */
export function rethrow(error: unknown): never {
  throw error instanceof MingoError ? badValue(error.message) : error;
}

/** @throws CommandError when it isn't an expression */
export function compileExpression(expression: Value, environment: Environment): Evaluate {
  if (typeof expression === 'string' && /^\$[a-zA-Z_]\w*$/.test(expression)) {
    const name = expression.slice(1);
    return (document) => (Object.hasOwn(document, name) ? document[name] : undefined);
  }
  const prepared = prepare(expression, environment);
  if (typeof prepared === 'number') return () => prepared;
  const scope = scopeFor(environment);
  return (document) => {
    try {
      return evalExpr(document, prepared, scope.update({ root: document })) as Value;
    } catch (error) {
      return rethrow(error);
    }
  };
}

export function isTruthy(value: Value): boolean {
  return isNumeric(value) ? toNumber(value) !== 0 : value !== undefined && value !== null && value !== false;
}
