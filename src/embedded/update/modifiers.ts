import { Timestamp } from 'mongodb';
import { add, multiply } from '../bson/arithmetic';
import { compareValues, equalValues } from '../bson/compare';
import type { Document, NumericValue, Value } from '../bson/values';
import { bsonTypeName, isDocument, isInt32, isNumeric, toNumber } from '../bson/values';
import { badValue, CommandError, typeMismatch } from '../errors';
import type { FilterContext } from '../query/filter';
import { compileField, compileFilter, isOperatorDocument } from '../query/filter';
import type { Predicate } from '../query/path';
import { Sorter } from '../query/sort';
import { formatValue } from '../storage/format-value';
import type { Change } from './paths';
import { sameValue } from './same-value';

export interface Modifier {
  readonly change: Change;
  /** Makes the fields on the way that are missing. */
  readonly creates: boolean;
}

export interface ModifierContext {
  readonly filters: FilterContext;
  readonly now: Date;
}

type MakeModifier = (path: string, argument: Value, context: ModifierContext) => Modifier;

const assign =
  (argument: Value): Change =>
  (value) =>
    value !== undefined && sameValue(value, argument) ? value : argument;

function calculate(name: '$inc' | '$mul', combine: typeof add): MakeModifier {
  const verb = name === '$inc' ? 'increment' : 'multiply';
  return (path, argument) => {
    if (!isNumeric(argument)) {
      throw typeMismatch(`Cannot ${verb} with non-numeric argument: {${path}: ${formatValue(argument)}}`);
    }
    return {
      creates: true,
      change: (value) => {
        const from = value === undefined ? zeroLike(argument) : value;
        if (!isNumeric(from)) {
          throw typeMismatch(
            `Cannot apply ${name} to a value of non-numeric type. The field '${path}' has non-numeric type ${bsonTypeName(from)}`,
          );
        }
        if (value === undefined) return name === '$inc' ? argument : zeroLike(argument);
        const result = combine(from, argument);
        if (result === 'overflow')
          throw badValue(`Failed to apply ${name} operations to current value (${formatValue(from)})`);
        return sameValue(from, result) ? from : result;
      },
    };
  };
}

function zeroLike(value: NumericValue): NumericValue {
  const product = multiply(value, 0);
  return product === 'overflow' ? 0 : product;
}

function keepExtreme(direction: 1 | -1): MakeModifier {
  return (_path, argument) => ({
    creates: true,
    change: (value) =>
      value === undefined || compareValues(argument, value) * direction > 0 ? argument : value,
  });
}

const currentDate: MakeModifier = (path, argument, { now }) => {
  const type = isDocument(argument) ? argument.$type : 'date';
  if (argument !== true && argument !== false && type !== 'date' && type !== 'timestamp') {
    throw badValue(
      `${bsonTypeName(argument)} is not valid type for $currentDate. Please use a boolean ('true') or a $type expression ({$type: 'timestamp/date'}): ${path}`,
    );
  }
  const value = type === 'timestamp' ? new Timestamp({ t: Math.floor(now.getTime() / 1000), i: 1 }) : now;
  return { creates: true, change: () => value };
};

function arrayOrThrow(value: Value, path: string): Value[] {
  if (value === undefined) return [];
  if (Array.isArray(value)) return value;
  throw badValue(`The field '${path}' must be an array but is of type ${bsonTypeName(value)}`);
}

function eachOf(argument: Value, name: string): { items: Value[]; options: Document } {
  if (!isDocument(argument) || argument.$each === undefined) return { items: [argument], options: {} };
  if (!Array.isArray(argument.$each)) {
    throw badValue(
      `The argument to $each in ${name} must be an array but it was of type: ${bsonTypeName(argument.$each)}`,
    );
  }
  return { items: argument.$each, options: argument };
}

type Arrange = (items: Value[]) => Value[];

function sortBy(how: Value): Arrange {
  if (how === undefined) return (items) => items;
  if (isDocument(how)) {
    const sorter = new Sorter(how);
    return (items) => sorter.sort(items, (each) => (isDocument(each) ? each : {}));
  }
  const direction = isNumeric(how) ? toNumber(how) : 0;
  if (direction !== 1 && direction !== -1) throw badValue('The $sort element value must be either 1 or -1');
  return (items) => items.toSorted((a, b) => compareValues(a, b) * direction);
}

function wholeNumberOf(clause: string, value: Value): number | undefined {
  if (value === undefined) return undefined;
  const number = isNumeric(value) ? toNumber(value) : NaN;
  if (!Number.isInteger(number))
    throw badValue(`The value for ${clause} must be an integer value but was given ${formatValue(value)}`);
  return number;
}

const push: MakeModifier = (path, argument) => {
  const { items, options } = eachOf(argument, '$push');
  const unknown = Object.keys(options).find(
    (name) => !['$each', '$slice', '$sort', '$position'].includes(name),
  );
  if (unknown !== undefined) throw badValue(`Unrecognized clause in $push: ${unknown}`);
  const position = wholeNumberOf('$position', options.$position);
  const size = wholeNumberOf('$slice', options.$slice);
  const arrange = sortBy(options.$sort);
  return {
    creates: true,
    change: (value) => {
      const array = arrayOrThrow(value, path);
      const start = position ?? array.length;
      let result = arrange([...array.slice(0, start), ...items, ...array.slice(start)]);
      if (size !== undefined) result = size < 0 ? result.slice(size) : result.slice(0, size);
      return value !== undefined && sameValue(value, result) ? value : result;
    },
  };
};

const addToSet: MakeModifier = (path, argument) => {
  const { items } = eachOf(argument, '$addToSet');
  return {
    creates: true,
    change: (value) => {
      if (value !== undefined && !Array.isArray(value)) {
        throw badValue(
          `Cannot apply $addToSet to non-array field. Field named '${path}' has non-array type ${bsonTypeName(value)}`,
        );
      }
      const result = [...(value ?? [])];
      for (const item of items) if (!result.some((each) => equalValues(each, item))) result.push(item);
      return value?.length === result.length ? value : result;
    },
  };
};

function removeWhere(name: string, test: Predicate): Change {
  return (value) => {
    if (value === undefined) return undefined;
    if (!Array.isArray(value)) throw badValue(`Cannot apply ${name} to a non-array value`);
    const kept = value.filter((each) => !test(each));
    return kept.length === value.length ? value : kept;
  };
}

const pull: MakeModifier = (_path, argument, { filters }) => {
  let test: Predicate;
  if (isDocument(argument) && !isOperatorDocument(argument)) {
    const matches = compileFilter(argument, filters);
    test = (each) => isDocument(each) && matches(each);
  } else {
    const matches = compileField('value', argument, filters);
    test = (each) => matches({ value: each });
  }
  return { creates: false, change: removeWhere('$pull', test) };
};

const pullAll: MakeModifier = (_path, argument) => {
  if (!Array.isArray(argument))
    throw badValue(`$pullAll requires an array argument but was given a ${bsonTypeName(argument)}`);
  return {
    creates: false,
    change: removeWhere('$pullAll', (each) => argument.some((item) => equalValues(item, each))),
  };
};

const pop: MakeModifier = (path, argument) => {
  const end = isNumeric(argument) ? toNumber(argument) : 0;
  if (end !== 1 && end !== -1)
    throw new CommandError(9, `$pop expects 1 or -1, found: ${formatValue(argument)}`);
  return {
    creates: false,
    change: (value) => {
      if (value === undefined) return undefined;
      if (!Array.isArray(value)) {
        throw typeMismatch(`Path '${path}' contains an element of non-array type '${bsonTypeName(value)}'`);
      }
      if (value.length === 0) return value;
      return end === 1 ? value.slice(0, -1) : value.slice(1);
    },
  };
};

/** An int32 or an int64, as they are held here. */
const isIntegral = (value: Value): value is number | bigint =>
  typeof value === 'bigint' || (typeof value === 'number' && isInt32(value));

const bit: MakeModifier = (path, argument) => {
  if (!isDocument(argument))
    throw badValue(`The $bit modifier is not compatible with a ${bsonTypeName(argument)}`);
  return {
    creates: true,
    change: (value) => {
      const from = value ?? 0;
      if (!isIntegral(from)) {
        throw badValue(
          `Cannot apply $bit to a value of non-integral type: the field '${path}' is of type ${bsonTypeName(from)}`,
        );
      }
      let long = typeof from === 'bigint';
      let bits = BigInt(from);
      for (const [operation, operand] of Object.entries(argument)) {
        if (!isIntegral(operand)) throw badValue('The $bit modifier field must be an Integer(32/64 bit)');
        long ||= typeof operand === 'bigint';
        const mask = BigInt(operand);
        if (operation === 'and') bits &= mask;
        else if (operation === 'or') bits |= mask;
        else if (operation === 'xor') bits ^= mask;
        else throw badValue(`The $bit modifier only supports 'and', 'or', and 'xor', not '${operation}'`);
      }
      const result = long ? BigInt.asIntN(64, bits) : Number(BigInt.asIntN(32, bits));
      return value !== undefined && sameValue(value, result) ? value : result;
    },
  };
};

export const MODIFIERS: ReadonlyMap<string, MakeModifier> = new Map(
  Object.entries<MakeModifier>({
    $set: (_path, argument) => ({ creates: true, change: assign(argument) }),
    $setOnInsert: (_path, argument) => ({ creates: true, change: assign(argument) }),
    $unset: () => ({ creates: false, change: () => undefined }),
    $inc: calculate('$inc', add),
    $mul: calculate('$mul', multiply),
    $min: keepExtreme(-1),
    $max: keepExtreme(1),
    $currentDate: currentDate,
    $push: push,
    $addToSet: addToSet,
    $pull: pull,
    $pullAll: pullAll,
    $pop: pop,
    $bit: bit,
  }),
);
