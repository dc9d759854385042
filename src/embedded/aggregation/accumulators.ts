import { addOrWiden, divide } from '../bson/arithmetic';
import { compareValues, keyOf } from '../bson/compare';
import type { Document, NumericValue, Value } from '../bson/values';
import { double, isDocument, isNumeric, toNumber } from '../bson/values';
import { CommandError } from '../errors';

/** Folds the values of one group. */
export interface Accumulator {
  add(value: Value): void;
  result(): Value;
}

function sum(): Accumulator {
  let total: NumericValue = 0;
  return {
    add: (value) => {
      if (isNumeric(value)) total = addOrWiden(total, value);
    },
    result: () => total,
  };
}

function average(): Accumulator {
  let total: NumericValue = 0;
  let count = 0;
  return {
    add: (value) => {
      if (!isNumeric(value)) return;
      total = addOrWiden(total, value);
      count++;
    },
    result: () => (count === 0 ? null : divide(total, count)),
  };
}

function extreme(direction: 1 | -1): Accumulator {
  let best: Value = null;
  let empty = true;
  return {
    add: (value) => {
      if (value === null || value === undefined) return;
      if (empty || compareValues(value, best) * direction > 0) best = value;
      empty = false;
    },
    result: () => best,
  };
}

function end(which: 'first' | 'last'): Accumulator {
  let kept: Value = null;
  let empty = true;
  return {
    add: (value) => {
      if (empty || which === 'last') kept = value ?? null;
      empty = false;
    },
    result: () => kept,
  };
}

function push(): Accumulator {
  const items: Value[] = [];
  return {
    add: (value) => {
      if (value !== undefined) items.push(value);
    },
    result: () => items,
  };
}

function addToSet(): Accumulator {
  const items = new Map<string, Value>();
  return {
    add: (value) => {
      if (value === undefined) return;
      const key = keyOf(value);
      if (!items.has(key)) items.set(key, value);
    },
    result: () => [...items.values()],
  };
}

function count(): Accumulator {
  let total = 0;
  return { add: () => total++, result: () => total };
}

function mergeObjects(): Accumulator {
  const merged: Document = {};
  return {
    add: (value) => {
      if (value === null || value === undefined) return;
      if (!isDocument(value)) throw new CommandError(40400, '$mergeObjects requires object inputs');
      Object.assign(merged, value);
    },
    result: () => merged,
  };
}

function deviation(sample: boolean): Accumulator {
  let [seen, mean, squares] = [0, 0, 0];
  return {
    add: (value) => {
      if (!isNumeric(value)) return;
      const number = toNumber(value);
      seen++;
      const difference = number - mean;
      mean += difference / seen;
      squares += difference * (number - mean);
    },
    result: () => {
      const divisor = sample ? seen - 1 : seen;
      return divisor <= 0 ? null : double(Math.sqrt(squares / divisor));
    },
  };
}

/** The accumulators whose results depend on BSON's types or order, or that are worth folding without keeping the group. */
export const ACCUMULATORS: Readonly<Record<string, () => Accumulator>> = {
  $sum: sum,
  $avg: average,
  $min: () => extreme(-1),
  $max: () => extreme(1),
  $first: () => end('first'),
  $last: () => end('last'),
  $push: push,
  $addToSet: addToSet,
  $count: count,
  $mergeObjects: mergeObjects,
  $stdDevPop: () => deviation(false),
  $stdDevSamp: () => deviation(true),
};
