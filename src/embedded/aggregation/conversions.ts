import { Binary, Decimal128, Timestamp } from 'mongodb';
import { fitsInt64, kindOf } from '../bson/arithmetic';
import type { NumericValue, Value } from '../bson/values';
import { bsonTypeName, double, isInt32, isNumeric, ObjectId, toNumber } from '../bson/values';
import { CommandError } from '../errors';

const failure = (value: Value, target: string): CommandError =>
  new CommandError(241, `Failed to convert ${bsonTypeName(value)} to ${target} in $convert`);

function numberOf(value: Value, target: string): NumericValue {
  if (isNumeric(value)) return value;
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (value instanceof Date) return BigInt(value.getTime());
  if (typeof value === 'string' && value.trim() !== '' && !Number.isNaN(Number(value))) {
    return /^[+-]?\d+$/.test(value) ? BigInt(value) : Number(value);
  }
  throw failure(value, target);
}

function integerOf(value: Value, target: 'int' | 'long'): bigint {
  const number = numberOf(value, target);
  if (typeof value === 'string' && typeof number !== 'bigint') throw failure(value, target);
  if (typeof number === 'bigint') return number;
  const whole = Math.trunc(toNumber(number));
  if (!Number.isFinite(whole)) throw failure(value, target);
  return BigInt(whole);
}

function toInt(value: Value): Value {
  const whole = Number(integerOf(value, 'int'));
  if (!isInt32(whole) && whole !== 0) throw failure(value, 'int');
  return whole + 0;
}

function toLong(value: Value): Value {
  const whole = integerOf(value, 'long');
  if (!fitsInt64(whole)) throw failure(value, 'long');
  return whole;
}

function toDecimal(value: Value): Value {
  if (typeof value === 'string') return Decimal128.fromStringWithRounding(value);
  const number = numberOf(value, 'decimal');
  return number instanceof Decimal128 ? number : Decimal128.fromStringWithRounding(textOf(number));
}

function textOf(value: Value): string {
  if (value instanceof Date) return value.toISOString();
  if (isNumeric(value) && kindOf(value) === 'double') return String(toNumber(value));
  if (value instanceof Binary) return value.toString('base64');
  if (
    typeof value === 'string' ||
    typeof value === 'boolean' ||
    value instanceof ObjectId ||
    isNumeric(value)
  ) {
    return String(value);
  }
  throw failure(value, 'string');
}

function toDate(value: Value): Value {
  if (value instanceof Date) return value;
  if (value instanceof ObjectId) return value.createdAt;
  if (value instanceof Timestamp) return new Date(value.t * 1000);
  if (typeof value === 'string' && !Number.isNaN(Date.parse(value))) {
    // Without an offset the server takes UTC, where JavaScript takes local time.
    return new Date(/(Z|[+-]\d\d:?\d\d)$/i.test(value) || !value.includes('T') ? value : `${value}Z`);
  }
  if (isNumeric(value) && kindOf(value) !== 'int') return new Date(toNumber(value));
  throw failure(value, 'date');
}

function toBool(value: Value): boolean {
  return isNumeric(value) ? toNumber(value) !== 0 : value !== false;
}

function toObjectId(value: Value): Value {
  if (value instanceof ObjectId) return value;
  if (typeof value === 'string' && /^[0-9a-f]{24}$/i.test(value)) return ObjectId.fromHex(value);
  throw failure(value, 'objectId');
}

/** By the name of the type, as `$convert` takes it. Null and missing values are the caller's to handle. */
export const CONVERSIONS: Readonly<Record<string, (value: Value) => Value>> = {
  int: toInt,
  long: toLong,
  double: (value) => double(toNumber(numberOf(value, 'double'))),
  decimal: toDecimal,
  string: textOf,
  date: toDate,
  bool: toBool,
  objectId: toObjectId,
};
