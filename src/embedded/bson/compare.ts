import type { Binary, BSONSymbol, Code, Timestamp } from 'mongodb';
import { BSONRegExp, Decimal128, Double } from 'mongodb';
import { entriesOf, namesOf } from './field-order';
import { RANK as RANKS } from './ranks';
import type { Document, NumericValue, ObjectId, Value } from './values';
import { at, rankOf, toNumber } from './values';

/** Imports are looked up at each use; these comparisons are what everything else waits for. */
const RANK = RANKS;

export type StringOrder = (a: string, b: string) => number;

/** Orders strings by their UTF-8 bytes, as the server does; code units differ from that only around surrogates. */
export const compareStrings: StringOrder = (a, b) => {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    let x = a.charCodeAt(i);
    let y = b.charCodeAt(i);
    if (x === y) continue;
    if (x >= 0xd800 && y >= 0xd800) {
      x += x < 0xe000 ? 0x2000 : -0x800;
      y += y < 0xe000 ? 0x2000 : -0x800;
    }
    return x - y;
  }
  return a.length - b.length;
};

export interface ExactDecimal {
  readonly coefficient: bigint;
  readonly exponent: number;
}

export function exactDecimal(value: Decimal128): ExactDecimal {
  const [mantissa = '0', exponent = '0'] = value.toString().split('E');
  const [whole = '0', fraction = ''] = mantissa.split('.');
  return { coefficient: BigInt(whole + fraction), exponent: Number(exponent) - fraction.length };
}

/** NaN or an infinity as such, and 0 for any other number. */
function unboundedPart(value: NumericValue): number {
  if (!(value instanceof Decimal128)) {
    const number = toNumber(value);
    return Number.isFinite(number) ? 0 : number;
  }
  const text = value.toString();
  return /nan|inf/i.test(text) ? Number(text) : 0;
}

function compareDecimalTo(decimal: Decimal128, other: NumericValue): number {
  const [unbounded, otherUnbounded] = [unboundedPart(decimal), unboundedPart(other)];
  if (unbounded !== 0 || otherUnbounded !== 0) return compareDoubles(unbounded, otherUnbounded);
  const left = exactDecimal(decimal);
  let numerator: bigint;
  let twos = 0;
  let exponent = 0;
  if (other instanceof Decimal128) {
    ({ coefficient: numerator, exponent } = exactDecimal(other));
  } else if (typeof other === 'bigint') {
    numerator = other;
  } else {
    let scaled = toNumber(other);
    while (!Number.isInteger(scaled)) {
      scaled *= 2;
      twos++;
    }
    numerator = BigInt(scaled);
  }
  const base = Math.min(left.exponent, exponent);
  const a = left.coefficient * 10n ** BigInt(left.exponent - base) * 2n ** BigInt(twos);
  const b = numerator * 10n ** BigInt(exponent - base);
  return a < b ? -1 : a > b ? 1 : 0;
}

function compareDoubles(a: number, b: number): number {
  if (a < b) return -1;
  if (a > b) return 1;
  if (a === b) return 0;
  return Number.isNaN(a) ? (Number.isNaN(b) ? 0 : -1) : 1;
}

/** Across all numeric types, exactly: 2^53 + 1 as an int64 is not equal to any double. NaN is equal to itself and below the rest. */
export function compareNumbers(a: NumericValue, b: NumericValue): number {
  if (a instanceof Decimal128) return compareDecimalTo(a, b);
  if (b instanceof Decimal128) return -compareDecimalTo(b, a);
  const x = a instanceof Double ? a.value : a;
  const y = b instanceof Double ? b.value : b;
  if (typeof x === 'number' && typeof y === 'number') return compareDoubles(x, y);
  if (x < y) return -1;
  if (x > y) return 1;
  return Number.isNaN(x) ? -1 : Number.isNaN(y) ? 1 : 0;
}

function compareDocuments(a: Document, b: Document, strings: StringOrder): number {
  const namesA = namesOf(a);
  const namesB = namesOf(b);
  const length = Math.min(namesA.length, namesB.length);
  for (let i = 0; i < length; i++) {
    const nameA = at(namesA, i);
    const nameB = at(namesB, i);
    const valueA = a[nameA];
    const valueB = b[nameB];
    const order =
      rankOf(valueA) - rankOf(valueB) ||
      compareStrings(nameA, nameB) ||
      compareValues(valueA, valueB, strings);
    if (order !== 0) return order;
  }
  return namesA.length - namesB.length;
}

function compareArrays(a: readonly Value[], b: readonly Value[], strings: StringOrder): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const order = compareValues(a[i], b[i], strings);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

function stringOf(value: string | BSONSymbol): string {
  return typeof value === 'string' ? value : value.value;
}

function compareBinaries(a: Binary, b: Binary): number {
  return (
    a.length() - b.length() ||
    a.sub_type - b.sub_type ||
    Buffer.compare(a.buffer.subarray(0, a.length()), b.buffer.subarray(0, b.length()))
  );
}

function compareTimestamps(a: Timestamp, b: Timestamp): number {
  return a.t - b.t || a.i - b.i;
}

function textOf(value: BSONRegExp | Code): string {
  return value instanceof BSONRegExp ? `${value.pattern}/${value.options}` : value.code;
}

/** BSON's total order. `missing` sorts before null; callers for whom both are the same pass null. */
export function compareValues(a: Value, b: Value, strings: StringOrder = compareStrings): number {
  if (typeof a === 'number' && typeof b === 'number') return compareDoubles(a, b);
  if (typeof a === 'string' && typeof b === 'string') return strings(a, b);
  const rank = rankOf(a);
  const difference = rank - rankOf(b);
  if (difference !== 0) return difference;
  switch (rank) {
    case RANK.number:
      return compareNumbers(a as NumericValue, b as NumericValue);
    case RANK.string:
      return strings(stringOf(a as string | BSONSymbol), stringOf(b as string | BSONSymbol));
    case RANK.boolean:
      return Number(a) - Number(b);
    case RANK.date:
      return compareDoubles((a as Date).getTime(), (b as Date).getTime());
    case RANK.objectId:
      return (a as ObjectId).compare(b as ObjectId);
    case RANK.object:
      return compareDocuments(a as Document, b as Document, strings);
    case RANK.array:
      return compareArrays(a as Value[], b as Value[], strings);
    case RANK.binary:
      return compareBinaries(a as Binary, b as Binary);
    case RANK.timestamp:
      return compareTimestamps(a as Timestamp, b as Timestamp);
    case RANK.regex:
    case RANK.code:
      return compareStrings(textOf(a as BSONRegExp | Code), textOf(b as BSONRegExp | Code));
    case RANK.codeWithScope: {
      const [x, y] = [a as Code, b as Code];
      return (
        compareStrings(x.code, y.code) || compareDocuments(x.scope as Document, y.scope as Document, strings)
      );
    }
    default:
      return 0;
  }
}

export function equalValues(a: Value, b: Value): boolean {
  return a === b || compareValues(a, b) === 0;
}

function numberKey(value: NumericValue): string {
  const approximate = toNumber(value);
  if (compareNumbers(value, approximate) === 0) return `n${approximate}`;
  if (!(value instanceof Decimal128)) return `l${String(value)}`;
  let { coefficient, exponent } = exactDecimal(value);
  while (coefficient !== 0n && coefficient % 10n === 0n) {
    coefficient /= 10n;
    exponent++;
  }
  return exponent >= 0 ? `l${coefficient * 10n ** BigInt(exponent)}` : `d${coefficient}e${exponent}`;
}

/** Equal for equal values and for no others, to group and to look up by. */
export function keyOf(value: Value): string {
  const rank = rankOf(value);
  switch (rank) {
    case RANK.number:
      return numberKey(value as NumericValue);
    case RANK.string:
      return `s${JSON.stringify(stringOf(value as string | BSONSymbol))}`;
    case RANK.boolean:
      return value === true ? 't' : 'f';
    case RANK.date:
      return `@${(value as Date).getTime()}`;
    case RANK.objectId:
      return `o${(value as ObjectId).toHexString()}`;
    case RANK.object:
      return `{${entriesOf(value as Document)
        .map(([name, each]) => `${JSON.stringify(name)}:${keyOf(each)}`)
        .join()}}`;
    case RANK.array:
      return `[${(value as Value[]).map(keyOf).join()}]`;
    case RANK.binary: {
      const binary = value as Binary;
      return `b${binary.sub_type}:${binary.toString('base64')}`;
    }
    case RANK.timestamp: {
      const { t, i } = value as Timestamp;
      return `T${t}:${i}`;
    }
    case RANK.regex:
    case RANK.code:
      return `r${rank}${JSON.stringify(textOf(value as BSONRegExp | Code))}`;
    case RANK.codeWithScope: {
      const code = value as Code;
      return `c${JSON.stringify(code.code)}${keyOf(code.scope)}`;
    }
    default:
      return `_${rank}`;
  }
}
