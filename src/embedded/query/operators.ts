import { Binary, BSONRegExp, BSONSymbol } from 'mongodb';
import type { StringOrder } from '../bson/compare';
import { compareStrings, compareValues, keyOf } from '../bson/compare';
import { RANK } from '../bson/ranks';
import type { Document, NumericValue, Value } from '../bson/values';
import { BSON_TYPE_NUMBERS, bsonTypeName, isDocument, isNumeric, rankOf, toNumber } from '../bson/values';
import { badValue, CommandError, failedToParse } from '../errors';
import { formatValue } from '../storage/format-value';
import type { DocumentTest, FilterContext } from './filter';
import { compileField, compileFilter, isOperatorDocument } from './filter';
import type { Predicate } from './path';
import { anyAt } from './path';

export function toRegExp(pattern: string, options: string): RegExp {
  const flags = new Set(Array.from(options).filter((flag) => 'imsu'.includes(flag)));
  if (options.includes('x')) {
    pattern = pattern.replace(/\\[\s#]|\s+|#.*$/gm, (text) => (text.startsWith('\\') ? text : ''));
  }
  // PCRE takes inline options at the start; JavaScript has them as flags only.
  const inline = /^\(\?([imsx]+)\)/.exec(pattern);
  for (const flag of inline?.[1] ?? '') if (flag !== 'x') flags.add(flag);
  try {
    return new RegExp(pattern.slice(inline?.[0].length ?? 0), [...flags].join(''));
  } catch {
    throw new CommandError(51091, `Regular expression is invalid: ${pattern}`);
  }
}

export function matchesPattern({ pattern, options }: BSONRegExp): Predicate {
  const expression = toRegExp(pattern, options);
  return (value) =>
    typeof value === 'string'
      ? expression.test(value)
      : value instanceof BSONSymbol && expression.test(value.value);
}

/** Equality as a filter means it: null is equal to a missing value too. */
export function equalTo(wanted: Value, strings: StringOrder = compareStrings): Predicate {
  if (wanted === null || wanted === undefined) return (value) => value === undefined || value === null;
  if (typeof wanted === 'string' && strings === compareStrings) {
    return (value) => value === wanted || (value instanceof BSONSymbol && value.value === wanted);
  }
  return (value) => value === wanted || compareValues(value, wanted, strings) === 0;
}

/** `$gt` and its kin compare values of one type only; with MinKey and MaxKey every type. */
function comparison(name: string, wanted: Value, strings?: StringOrder): Predicate {
  const accepts: Record<string, (order: number) => boolean> = {
    $gt: (order) => order > 0,
    $gte: (order) => order >= 0,
    $lt: (order) => order < 0,
    $lte: (order) => order <= 0,
  };
  const accept = accepts[name] ?? (() => false);
  const rank = rankOf(wanted);
  if (rank === RANK.minKey || rank === RANK.maxKey) return (value) => accept(compareValues(value, wanted));
  if (rank === RANK.null) {
    return name === '$gte' || name === '$lte'
      ? (value) => value === undefined || value === null
      : () => false;
  }
  if (typeof wanted === 'number' && !Number.isNaN(wanted)) {
    return (value) =>
      typeof value === 'number'
        ? !Number.isNaN(value) && accept(value - wanted || 0)
        : rankOf(value) === rank && !isNaNValue(value) && accept(compareValues(value, wanted));
  }
  const wantedNaN = isNaNValue(wanted);
  return (value) =>
    rankOf(value) === rank &&
    isNaNValue(value) === wantedNaN &&
    accept(compareValues(value, wanted, strings));
}

const isNaNValue = (value: Value): boolean => isNumeric(value) && Number.isNaN(toNumber(value));

function oneOf(argument: Value, name: string, strings?: StringOrder): Predicate {
  if (!Array.isArray(argument)) throw badValue(`${name} needs an array`);
  if (argument.some(isOperatorDocument)) throw badValue(`cannot nest $ under ${name}`);
  const patterns = argument.filter((each) => each instanceof BSONRegExp).map(matchesPattern);
  const others = argument.filter((each) => !(each instanceof BSONRegExp));
  let isOther: Predicate;
  if (others.length <= 4 || strings) {
    const tests = others.map((each) => equalTo(each, strings));
    isOther = (value) => tests.some((test) => test(value));
  } else {
    const keys = new Set(others.map((each) => keyOf(each)));
    const takesMissing = others.includes(null);
    isOther = (value) => (value === undefined ? takesMissing : keys.has(keyOf(value)));
  }
  return (value) => isOther(value) || patterns.some((matches) => matches(value));
}

function typeTest(argument: Value): Predicate {
  const wanted = (Array.isArray(argument) ? argument : [argument]).map((each) => {
    if (each === 'number') return each;
    const number =
      typeof each === 'string' ? BSON_TYPE_NUMBERS[each] : isNumeric(each) ? toNumber(each) : undefined;
    const name = Object.entries(BSON_TYPE_NUMBERS).find(([, known]) => known === number)?.[0];
    if (name === undefined) throw badValue(`Unknown type name alias: ${formatValue(each)}`);
    return name;
  });
  return (value) =>
    value !== undefined &&
    (wanted.includes(bsonTypeName(value)) || (wanted.includes('number') && isNumeric(value)));
}

function remainder(argument: Value): Predicate {
  if (!Array.isArray(argument)) throw badValue('malformed mod, needs to be an array');
  if (argument.length < 2) throw badValue('malformed mod, not enough elements');
  if (argument.length > 2) throw badValue('malformed mod, too many elements');
  const [divisor, rest] = argument.map((each) => {
    const number = isNumeric(each) ? Math.trunc(toNumber(each)) : NaN;
    if (!Number.isFinite(number)) throw badValue('malformed mod, divisor or remainder not a number');
    return BigInt(number);
  });
  if (divisor === undefined || divisor === 0n) throw badValue('divisor cannot be 0');
  return (value) => {
    if (!isNumeric(value)) return false;
    const number = Math.trunc(toNumber(value));
    return Number.isFinite(number) && BigInt(number) % divisor === rest;
  };
}

function wholeMask(name: string, argument: NumericValue): bigint {
  const mask = typeof argument === 'bigint' ? argument : toNumber(argument);
  if (typeof mask === 'number' && !Number.isInteger(mask))
    throw failedToParse(`Expected an integer: ${name}: ${formatValue(argument)}`);
  if (mask < 0) throw failedToParse(`Expected a non-negative number in: ${name}: ${formatValue(argument)}`);
  return BigInt(mask);
}

/** No number has bits beyond its sign; data may, but none so long is stored. */
const MAX_BIT_POSITION = 2_147_483_647;

function bitPosition(name: string, value: Value): bigint {
  const position = isNumeric(value) ? toNumber(value) : NaN;
  if (!Number.isInteger(position) || position < 0 || position > MAX_BIT_POSITION)
    throw badValue(`bit positions in ${name} must be whole numbers that are not negative`);
  return BigInt(position);
}

function bitsTest(name: string, argument: Value): Predicate {
  let mask = 0n;
  if (Array.isArray(argument)) {
    for (const position of argument) mask |= 1n << bitPosition(name, position);
  } else if (argument instanceof Binary) {
    argument.buffer.forEach((byte, i) => (mask |= BigInt(byte) << BigInt(8 * i)));
  } else if (isNumeric(argument)) {
    mask = wholeMask(name, argument);
  } else {
    throw badValue(`${name} takes an Array, a number, or a BinData`);
  }
  return (value) => {
    let bits = 0n;
    if (value instanceof Binary) value.buffer.forEach((byte, i) => (bits |= BigInt(byte) << BigInt(8 * i)));
    else if (isNumeric(value) && Number.isInteger(toNumber(value)))
      bits = BigInt.asUintN(64, BigInt(typeof value === 'bigint' ? value : toNumber(value)));
    else return false;
    switch (name) {
      case '$bitsAllSet':
        return (bits & mask) === mask;
      case '$bitsAnySet':
        return (bits & mask) !== 0n;
      case '$bitsAllClear':
        return (bits & mask) === 0n;
      default:
        return (bits & mask) !== mask;
    }
  };
}

/** The test that `$elemMatch` puts to each element: a filter for documents, or operators for values. */
export function elementTest(argument: Value, context: FilterContext): Predicate {
  if (!isDocument(argument)) throw badValue('$elemMatch needs an Object');
  const [first] = Object.keys(argument);
  if (
    isOperatorDocument(argument) &&
    first !== '$and' &&
    first !== '$or' &&
    first !== '$nor' &&
    first !== '$expr'
  ) {
    const test = compileField('value', argument, context);
    return (value) => test({ value });
  }
  const test = compileFilter(argument, context);
  return (value) => {
    if (isDocument(value)) return test(value);
    return Array.isArray(value) && test(Object.fromEntries(value.entries()));
  };
}

function compileAll(path: string, argument: Value, context: FilterContext): DocumentTest {
  if (!Array.isArray(argument)) throw badValue('$all needs an array');
  if (argument.length === 0) return () => false;
  const tests = argument.map((each) =>
    isOperatorDocument(each)
      ? compileFieldOperator(path, Object.keys(each)[0] ?? '', Object.values(each)[0], each, context)
      : compileField(path, each, context),
  );
  return (document) => tests.every((test) => test(document));
}

export function compileFieldOperator(
  path: string,
  name: string,
  argument: Value,
  siblings: Document,
  context: FilterContext,
): DocumentTest {
  const { strings } = context;
  const not =
    (test: DocumentTest): DocumentTest =>
    (document) =>
      !test(document);
  switch (name) {
    case '$eq':
      return anyAt(path, 'expand', equalTo(argument, strings));
    case '$ne':
      return not(anyAt(path, 'expand', equalTo(argument, strings)));
    case '$gt':
    case '$gte':
    case '$lt':
    case '$lte':
      return anyAt(path, 'expand', comparison(name, argument, strings));
    case '$in':
      return anyAt(path, 'expand', oneOf(argument, name, strings));
    case '$nin':
      return not(anyAt(path, 'expand', oneOf(argument, name, strings)));
    case '$exists': {
      const exists = anyAt(path, 'whole', (value) => value !== undefined);
      return argument === false || argument === null || (isNumeric(argument) && toNumber(argument) === 0)
        ? not(exists)
        : exists;
    }
    case '$type':
      return anyAt(path, 'expand', typeTest(argument));
    case '$size': {
      if (!isNumeric(argument)) throw badValue(`Failed to parse $size. Expected a number in: $size`);
      const size = toNumber(argument);
      if (size < 0 || !Number.isInteger(size))
        throw badValue('Failed to parse $size. Expected a non-negative number');
      return anyAt(path, 'whole', (value) => Array.isArray(value) && value.length === size);
    }
    case '$all':
      return compileAll(path, argument, context);
    case '$elemMatch': {
      const test = elementTest(argument, context);
      return anyAt(path, 'whole', (value) => Array.isArray(value) && value.some(test));
    }
    case '$regex': {
      const options = typeof siblings.$options === 'string' ? siblings.$options : undefined;
      if (argument instanceof BSONRegExp) {
        return anyAt(
          path,
          'expand',
          matchesPattern(new BSONRegExp(argument.pattern, options ?? argument.options)),
        );
      }
      if (typeof argument !== 'string') throw badValue('$regex has to be a string');
      return anyAt(path, 'expand', matchesPattern(new BSONRegExp(argument, options ?? '')));
    }
    case '$mod':
      return anyAt(path, 'expand', remainder(argument));
    case '$bitsAllSet':
    case '$bitsAnySet':
    case '$bitsAllClear':
    case '$bitsAnyClear':
      return anyAt(path, 'expand', bitsTest(name, argument));
    case '$comment':
      return () => true;
    default:
      throw badValue(`unknown operator: ${name}`);
  }
}
