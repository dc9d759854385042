import { evalExpr } from 'mingo/core';
import type { AnyObject, Options } from 'mingo/types';
import { addOrWiden, divide, mapNumber, multiplyOrWiden, negate, remainder } from '../bson/arithmetic';
import { compareValues, equalValues } from '../bson/compare';
import type { Document, NumericValue, Value } from '../bson/values';
import { BSON_TYPE_NUMBERS, bsonTypeName, isDocument, isNumeric, toNumber } from '../bson/values';
import { CommandError } from '../errors';
import { Sorter } from '../query/sort';
import { formatValue } from '../storage/format-value';
import { ACCUMULATORS } from './accumulators';
import { CONVERSIONS } from './conversions';

export type Operator = (object: unknown, expression: unknown, options: Options) => Value;

const valueOf = (object: unknown, expression: unknown, options: Options): Value =>
  evalExpr(object, expression, options) as Value;

const argumentsOf = (object: unknown, expression: unknown, options: Options): Value[] =>
  (Array.isArray(expression) ? expression : [expression]).map((each) => valueOf(object, each, options));

const isMissing = (value: Value): value is null | undefined => value === null || value === undefined;

function isTrue(value: Value): boolean {
  return isNumeric(value) ? toNumber(value) !== 0 : !isMissing(value) && value !== false;
}

function fold(name: string, combine: (a: Value, b: Value) => Value, start: NumericValue): Operator {
  return (object, expression, options) => {
    const values = argumentsOf(object, expression, options);
    if (values.some(isMissing)) return null;
    const unfit = values.find((each) => !isNumeric(each) && !(each instanceof Date));
    if (unfit !== undefined) {
      throw new CommandError(14, `${name} only supports numeric or date types, not ${bsonTypeName(unfit)}`);
    }
    return values.length === 0 ? start : values.reduce(combine);
  };
}

const millisOf = (value: Value): NumericValue =>
  value instanceof Date ? value.getTime() : (value as NumericValue);

function plus(a: Value, b: Value): Value {
  if (a instanceof Date || b instanceof Date) {
    if (a instanceof Date && b instanceof Date)
      throw new CommandError(16612, 'only one date allowed in an $add expression');
    return new Date(toNumber(millisOf(a)) + toNumber(millisOf(b)));
  }
  return addOrWiden(a as NumericValue, b as NumericValue);
}

function minus(a: Value, b: Value): Value {
  if (a instanceof Date) {
    const difference = a.getTime() - toNumber(millisOf(b));
    return b instanceof Date ? BigInt(difference) : new Date(difference);
  }
  if (b instanceof Date) throw new CommandError(14, "can't $subtract date from number");
  return addOrWiden(a as NumericValue, negate(b as NumericValue));
}

function binary(name: string, compute: (a: Value, b: Value) => Value): Operator {
  return (object, expression, options) => {
    const values = argumentsOf(object, expression, options);
    if (values.length !== 2) {
      throw new CommandError(
        16020,
        `Expression ${name} takes exactly 2 arguments. ${values.length} were passed in.`,
      );
    }
    const [a, b] = values;
    return compute(a, b);
  };
}

function arithmetic(name: string, compute: (a: NumericValue, b: NumericValue) => Value): Operator {
  return binary(name, (a, b) => {
    if (isMissing(a) || isMissing(b)) return null;
    if (!isNumeric(a) || !isNumeric(b)) throw new CommandError(14, `${name} only supports numeric types`);
    return compute(a, b);
  });
}

function unary(name: string, compute: (value: number) => number): Operator {
  return (object, expression, options) => {
    const [value] = argumentsOf(object, expression, options);
    if (isMissing(value)) return null;
    if (!isNumeric(value))
      throw new CommandError(28765, `${name} only supports numeric types, not ${bsonTypeName(value)}`);
    return mapNumber(value, compute);
  };
}

function rounding(name: string, compute: (value: number) => number): Operator {
  return (object, expression, options) => {
    const [value, digits] = argumentsOf(object, expression, options);
    if (isMissing(value)) return null;
    if (!isNumeric(value))
      throw new CommandError(51081, `${name} only supports numeric types, not ${bsonTypeName(value)}`);
    const places = isNumeric(digits) ? toNumber(digits) : 0;
    return mapNumber(value, (number) => {
      const scaled = compute(Number(`${number}e${places}`));
      return Number.isFinite(scaled) ? Number(`${scaled}e${-places}`) : compute(number);
    });
  };
}

function roundHalfToEven(value: number): number {
  const rounded = Math.round(value);
  return Math.abs(value % 1) === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded;
}

function comparing(name: string, accept: (order: number) => Value): Operator {
  return binary(name, (a, b) => accept(compareValues(a, b)));
}

function converting(target: string): Operator {
  return (object, expression, options) => {
    const [value] = argumentsOf(object, expression, options);
    return isMissing(value) ? null : (CONVERSIONS[target]?.(value) ?? null);
  };
}

const convert: Operator = (object, expression, options) => {
  const { input, to, onError, onNull } = expression as Document;
  const value = valueOf(object, input, options);
  if (isMissing(value)) return onNull === undefined ? null : valueOf(object, onNull, options);
  const wanted = valueOf(object, to, options);
  const type = isDocument(wanted) ? wanted.type : wanted;
  const name = isNumeric(type)
    ? Object.keys(BSON_TYPE_NUMBERS).find((each) => BSON_TYPE_NUMBERS[each] === toNumber(type))
    : type;
  const conversion = typeof name === 'string' ? CONVERSIONS[name] : undefined;
  if (!conversion) throw new CommandError(2, `Unknown type name: ${formatValue(type)}`);
  try {
    return conversion(value);
  } catch (error) {
    if (onError === undefined) throw error;
    return valueOf(object, onError, options);
  }
};

const conditional: Operator = (object, expression, options) => {
  const [test, yes, no] = Array.isArray(expression)
    ? (expression as Value[])
    : [(expression as Document).if, (expression as Document).then, (expression as Document).else];
  return valueOf(object, isTrue(valueOf(object, test, options)) ? yes : no, options);
};

const switching: Operator = (object, expression, options) => {
  const { branches, default: otherwise } = expression as { branches: Document[]; default?: Value };
  for (const { case: test, then } of branches) {
    if (isTrue(valueOf(object, test, options))) return valueOf(object, then, options);
  }
  if (otherwise === undefined) {
    throw new CommandError(
      40066,
      '$switch could not find a matching branch for an input, and no default was specified.',
    );
  }
  return valueOf(object, otherwise, options);
};

function logical(accept: (values: boolean[]) => boolean): Operator {
  return (object, expression, options) => accept(argumentsOf(object, expression, options).map(isTrue));
}

/** `{ $max: ['$a', '$b'] }` and `{ $max: '$list' }`: one accumulator over values instead of documents. */
function accumulating(name: string): Operator {
  return (object, expression, options) => {
    // Given a whole group, mingo means the accumulator of that name.
    if (Array.isArray(object)) return accumulate(name, object, expression, options);
    const values = argumentsOf(object, expression, options);
    const [only] = values;
    const items = values.length === 1 && Array.isArray(only) ? only : values;
    const accumulator = ACCUMULATORS[name]?.();
    for (const each of items) accumulator?.add(each);
    return accumulator?.result();
  };
}

/** What mingo makes of options before it evaluates with them: they carry the document that `$$ROOT` and field paths start at. */
export interface EvaluationScope extends Options {
  readonly local: { readonly root?: unknown };
  update(locals: { root: unknown; variables?: AnyObject }): EvaluationScope;
}

/** Folds an expression over documents, or the values themselves for none. */
export function accumulate(name: string, items: unknown[], expression: unknown, options: Options): Value {
  const accumulator = ACCUMULATORS[name]?.();
  const scope = options as EvaluationScope;
  const { root } = scope.local;
  for (const item of items) {
    const value: unknown =
      expression === null ? item : evalExpr(item, expression, scope.update({ root: item }));
    accumulator?.add(value as Value);
  }
  scope.update({ root });
  return accumulator?.result();
}

const sortArray: Operator = (object, expression, options) => {
  const { input, sortBy } = expression as Document;
  const array = valueOf(object, input, options);
  if (!Array.isArray(array)) return null;
  if (isDocument(sortBy)) {
    return new Sorter(sortBy).sort(array, (each) => (isDocument(each) ? each : {}));
  }
  return array.toSorted((a, b) => compareValues(a, b) * Number(sortBy));
};

/** The operators that depend on the type of a number or on the order of values, which mingo knows for JavaScript's only. */
export const TYPED_OPERATORS: Readonly<Record<string, Operator>> = {
  $add: fold('$add', plus, 0),
  $subtract: binary('$subtract', (a, b) => (isMissing(a) || isMissing(b) ? null : minus(a, b))),
  $multiply: fold('$multiply', (a, b) => multiplyOrWiden(a as NumericValue, b as NumericValue), 1),
  $divide: arithmetic('$divide', (a, b) => {
    if (toNumber(b) === 0) throw new CommandError(2, "can't $divide by zero");
    return divide(a, b);
  }),
  $mod: arithmetic('$mod', (a, b) => {
    if (toNumber(b) === 0) throw new CommandError(16610, "can't $mod by zero");
    return remainder(a, b);
  }),
  $abs: unary('$abs', Math.abs),
  $ceil: unary('$ceil', Math.ceil),
  $floor: unary('$floor', Math.floor),
  $round: rounding('$round', roundHalfToEven),
  $trunc: rounding('$trunc', Math.trunc),
  $cmp: comparing('$cmp', Math.sign),
  $eq: comparing('$eq', (order) => order === 0),
  $ne: comparing('$ne', (order) => order !== 0),
  $gt: comparing('$gt', (order) => order > 0),
  $gte: comparing('$gte', (order) => order >= 0),
  $lt: comparing('$lt', (order) => order < 0),
  $lte: comparing('$lte', (order) => order <= 0),
  $in: binary('$in', (value, array) => {
    if (!Array.isArray(array)) throw new CommandError(40081, '$in requires an array as a second argument');
    return array.some((each) => equalValues(each, value));
  }),
  $indexOfArray: (object, expression, options) => {
    const [array, wanted, start, end] = argumentsOf(object, expression, options);
    if (!Array.isArray(array)) return null;
    const from = isNumeric(start) ? toNumber(start) : 0;
    const to = isNumeric(end) ? toNumber(end) : array.length;
    return array.findIndex((each, i) => i >= from && i < to && equalValues(each, wanted));
  },
  $and: logical((values) => values.every(Boolean)),
  $or: logical((values) => values.some(Boolean)),
  $not: logical((values) => !values[0]),
  $cond: conditional,
  $switch: switching,
  $type: (object, expression, options) => bsonTypeName(argumentsOf(object, expression, options)[0]),
  $isNumber: (object, expression, options) => isNumeric(argumentsOf(object, expression, options)[0]),
  $convert: convert,
  $toInt: converting('int'),
  $toLong: converting('long'),
  $toDouble: converting('double'),
  $toDecimal: converting('decimal'),
  $toString: converting('string'),
  $toDate: converting('date'),
  $toBool: converting('bool'),
  $toObjectId: converting('objectId'),
  $sum: accumulating('$sum'),
  $avg: accumulating('$avg'),
  $min: accumulating('$min'),
  $max: accumulating('$max'),
  $sortArray: sortArray,
  $isArray: (object, expression, options) => Array.isArray(argumentsOf(object, expression, options)[0]),
  $indexOfCP: (object, expression, options) => {
    const [text, wanted, start, end] = argumentsOf(object, expression, options);
    if (isMissing(text)) return null;
    if (typeof text !== 'string' || typeof wanted !== 'string') {
      throw new CommandError(40093, '$indexOfCP requires a string as the first and the second argument');
    }
    // Positions count code points, which JavaScript's strings don't.
    const [characters, searched] = [Array.from(text), Array.from(wanted)];
    const last =
      (isNumeric(end) ? Math.min(toNumber(end), characters.length) : characters.length) - searched.length;
    for (let i = isNumeric(start) ? toNumber(start) : 0; i <= last; i++) {
      if (searched.every((character, k) => character === characters[i + k])) return i;
    }
    return -1;
  },
  $size: (object, expression, options) => {
    const [array] = argumentsOf(object, expression, options);
    if (Array.isArray(array)) return array.length;
    throw new CommandError(
      17124,
      `The argument to $size must be an array, but was of type: ${bsonTypeName(array)}`,
    );
  },
};
