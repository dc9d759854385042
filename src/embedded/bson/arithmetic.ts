import { Decimal128, Double } from 'mongodb';
import { exactDecimal } from './compare';
import type { NumericValue } from './values';
import { double, isInt32, toNumber } from './values';

export type NumberKind = 'int' | 'long' | 'double' | 'decimal';

export function kindOf(value: NumericValue): NumberKind {
  if (typeof value === 'number') return isInt32(value) ? 'int' : 'double';
  if (typeof value === 'bigint') return 'long';
  return value instanceof Double ? 'double' : 'decimal';
}

export const fitsInt64 = (value: bigint): boolean => BigInt.asIntN(64, value) === value;

function decimalOf(value: NumericValue): Decimal128 {
  if (value instanceof Decimal128) return value;
  return Decimal128.fromStringWithRounding(value instanceof Double ? String(value.value) : String(value));
}

const isFiniteNumber = (value: NumericValue): boolean => Number.isFinite(toNumber(value));

function decimalFrom(coefficient: bigint, exponent: number): Decimal128 {
  return Decimal128.fromStringWithRounding(`${coefficient}E${exponent}`);
}

function addDecimals(a: Decimal128, b: Decimal128): Decimal128 {
  const [x, y] = [exactDecimal(a), exactDecimal(b)];
  const exponent = Math.min(x.exponent, y.exponent);
  const scaled = (each: typeof x): bigint => each.coefficient * 10n ** BigInt(each.exponent - exponent);
  return decimalFrom(scaled(x) + scaled(y), exponent);
}

function multiplyDecimals(a: Decimal128, b: Decimal128): Decimal128 {
  const [x, y] = [exactDecimal(a), exactDecimal(b)];
  return decimalFrom(x.coefficient * y.coefficient, x.exponent + y.exponent);
}

type Operation = 'add' | 'multiply';

function combine(operation: Operation, a: NumericValue, b: NumericValue): NumericValue | 'overflow' {
  const adds = operation === 'add';
  if (a instanceof Decimal128 || b instanceof Decimal128) {
    if (isFiniteNumber(a) && isFiniteNumber(b)) {
      return (adds ? addDecimals : multiplyDecimals)(decimalOf(a), decimalOf(b));
    }
    const result = adds ? toNumber(a) + toNumber(b) : toNumber(a) * toNumber(b);
    return Decimal128.fromString(String(result));
  }
  const kinds = [kindOf(a), kindOf(b)];
  if (kinds.includes('double')) {
    return double(adds ? toNumber(a) + toNumber(b) : toNumber(a) * toNumber(b));
  }
  if (typeof a === 'number' && typeof b === 'number') {
    const result = adds ? a + b : a * b;
    if (isInt32(result) || result === 0) return result === 0 ? 0 : result;
  }
  const exact = adds ? toBigInt(a) + toBigInt(b) : toBigInt(a) * toBigInt(b);
  return fitsInt64(exact) ? exact : 'overflow';
}

function toBigInt(value: number | bigint | Double): bigint {
  return typeof value === 'bigint' ? value : BigInt(toNumber(value));
}

/** Adds as the server does: the wider type of the two, an int32 that overflows becomes an int64, and an int64 is an 'overflow'. */
export function add(a: NumericValue, b: NumericValue): NumericValue | 'overflow' {
  return combine('add', a, b);
}

export function multiply(a: NumericValue, b: NumericValue): NumericValue | 'overflow' {
  return combine('multiply', a, b);
}

/** For expressions, where an int64 that overflows goes on as a double. */
export function addOrWiden(a: NumericValue, b: NumericValue): NumericValue {
  const sum = add(a, b);
  return sum === 'overflow' ? double(toNumber(a) + toNumber(b)) : sum;
}

export function multiplyOrWiden(a: NumericValue, b: NumericValue): NumericValue {
  const product = multiply(a, b);
  return product === 'overflow' ? double(toNumber(a) * toNumber(b)) : product;
}

export function negate(value: NumericValue): NumericValue {
  return multiplyOrWiden(value, -1);
}

const DECIMAL_DIGITS = 34n;

export function divide(a: NumericValue, b: NumericValue): NumericValue {
  if (!(a instanceof Decimal128 || b instanceof Decimal128) || !isFiniteNumber(a) || !isFiniteNumber(b)) {
    return double(toNumber(a) / toNumber(b));
  }
  const [x, y] = [exactDecimal(decimalOf(a)), exactDecimal(decimalOf(b))];
  const scale = DECIMAL_DIGITS + BigInt(String(y.coefficient).length);
  const quotient = (x.coefficient * 10n ** scale) / y.coefficient;
  return trimmed(quotient, x.exponent - y.exponent - Number(scale));
}

function trimmed(coefficient: bigint, exponent: number): Decimal128 {
  while (coefficient !== 0n && coefficient % 10n === 0n) {
    coefficient /= 10n;
    exponent++;
  }
  return decimalFrom(coefficient, exponent);
}

export function remainder(a: NumericValue, b: NumericValue): NumericValue {
  const kinds = [kindOf(a), kindOf(b)];
  if (kinds.includes('double') || kinds.includes('decimal')) return double(toNumber(a) % toNumber(b));
  if (typeof a === 'bigint' || typeof b === 'bigint') {
    return toBigInt(a as number | bigint) % toBigInt(b as number | bigint);
  }
  return (toNumber(a) % toNumber(b)) + 0;
}

/** Applies a function of doubles, and gives the result in the value's own type. */
export function mapNumber(value: NumericValue, change: (value: number) => number): NumericValue {
  switch (kindOf(value)) {
    case 'int':
      return change(toNumber(value)) + 0;
    case 'long': {
      const changed = change(Number(value));
      return Number.isSafeInteger(changed) ? BigInt(changed) : value;
    }
    case 'double':
      return double(change(toNumber(value)));
    case 'decimal':
      return Decimal128.fromStringWithRounding(String(change(toNumber(value))));
  }
}
