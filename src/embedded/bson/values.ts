import { randomBytes } from 'node:crypto';
import { Binary, BSONRegExp, BSONSymbol, Code, Decimal128, Double, MaxKey, MinKey, Timestamp } from 'mongodb';
import { BracketEdge, RANK as RANKS } from './ranks';

/** Imports are looked up at each use, and this one is used for every comparison. */
const RANK = RANKS;

/**
 * How BSON is held in memory. Plain JavaScript values stand for the type that the drivers would send for them, so that
 * most values need no wrapper, and the rest keep their exact type:
 * - `number`: an int32 when it is a whole number in that range (and not -0), a double otherwise
 * - `Double`: a double that a plain number would be taken for an int32
 * - `bigint`: an int64
 */
export type Value =
  | undefined
  | null
  | boolean
  | number
  | bigint
  | string
  | Date
  | ObjectId
  | Double
  | Decimal128
  | Binary
  | Timestamp
  | BSONRegExp
  | BSONSymbol
  | Code
  | MinKey
  | MaxKey
  | BracketEdge
  | Value[]
  | Document;

/** Where a document keeps the order of its fields, if an object with these names would list them in another. Copies take it along. */
export const FIELD_ORDER = Symbol('field order');

export interface Document {
  [field: string]: Value;
  [FIELD_ORDER]?: readonly string[];
}

export type NumericValue = number | bigint | Double | Decimal128;

/** Twelve bytes in three signed 32-bit halves: a fifth of the memory of the driver's class, which counts at a million documents. */
export class ObjectId {
  static #counter = randomBytes(3).readUIntBE(0, 3);
  static readonly #process = randomBytes(5);

  constructor(
    readonly a: number,
    readonly b: number,
    readonly c: number,
  ) {}

  static read(bytes: Buffer, at: number): ObjectId {
    return new ObjectId(bytes.readInt32BE(at), bytes.readInt32BE(at + 4), bytes.readInt32BE(at + 8));
  }

  static fromHex(hex: string): ObjectId {
    return ObjectId.read(Buffer.from(hex, 'hex'), 0);
  }

  static generate(): ObjectId {
    ObjectId.#counter = (ObjectId.#counter + 1) & 0xffffff;
    const bytes = Buffer.alloc(12);
    bytes.writeUInt32BE(Math.floor(Date.now() / 1000), 0);
    ObjectId.#process.copy(bytes, 4);
    bytes.writeUIntBE(ObjectId.#counter, 9, 3);
    return ObjectId.read(bytes, 0);
  }

  write(bytes: Buffer, at: number): void {
    bytes.writeInt32BE(this.a, at);
    bytes.writeInt32BE(this.b, at + 4);
    bytes.writeInt32BE(this.c, at + 8);
  }

  compare(other: ObjectId): number {
    return this.a >>> 0 < other.a >>> 0
      ? -1
      : this.a !== other.a
        ? 1
        : this.b >>> 0 < other.b >>> 0
          ? -1
          : this.b !== other.b
            ? 1
            : this.c >>> 0 < other.c >>> 0
              ? -1
              : this.c !== other.c
                ? 1
                : 0;
  }

  get createdAt(): Date {
    return new Date((this.a >>> 0) * 1000);
  }

  toHexString(): string {
    const bytes = Buffer.allocUnsafe(12);
    this.write(bytes, 0);
    return bytes.toString('hex');
  }

  toString(): string {
    return this.toHexString();
  }
}

export function isDocument(value: unknown): value is Document {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

export function isNumeric(value: Value): value is NumericValue {
  return (
    typeof value === 'number' ||
    typeof value === 'bigint' ||
    value instanceof Double ||
    value instanceof Decimal128
  );
}

/** A field's value; names such as `constructor` that every object inherits are missing unless they were stored. */
export function field(document: Document, name: string): Value {
  const value = document[name];
  if (typeof value === 'function') return undefined;
  return name === '__proto__' && !Object.hasOwn(document, name) ? undefined : value;
}

export function setField(document: Document, name: string, value: Value): void {
  if (name === '__proto__') {
    Object.defineProperty(document, name, { value, enumerable: true, configurable: true, writable: true });
  } else {
    document[name] = value;
  }
}

/** For reading array elements whose index is known to be in range. */
export function at<T>(items: readonly T[], index: number): T {
  return items[index] as T;
}

export function isInt32(value: number): boolean {
  return (value | 0) === value && !Object.is(value, -0);
}

/** The double with that value, wrapped only where a plain number would be taken for an int32. */
export function double(value: number): number | Double {
  return isInt32(value) || Object.is(value, -0) ? new Double(value) : value;
}

/** A number of the JavaScript kind; an int64 or a decimal loses what a double can't hold. */
export function toNumber(value: NumericValue): number {
  if (typeof value === 'number') return value;
  if (typeof value === 'bigint') return Number(value);
  if (value instanceof Double) return value.value;
  return Number(value.toString());
}

export function bsonTypeName(value: Value): string {
  switch (typeof value) {
    case 'undefined':
      return 'missing';
    case 'number':
      return isInt32(value) ? 'int' : 'double';
    case 'bigint':
      return 'long';
    case 'string':
      return 'string';
    case 'boolean':
      return 'bool';
    default:
  }
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (value instanceof Date) return 'date';
  if (value instanceof ObjectId) return 'objectId';
  if (value instanceof Double) return 'double';
  if (value instanceof Decimal128) return 'decimal';
  if (value instanceof Binary) return 'binData';
  if (value instanceof Timestamp) return 'timestamp';
  if (value instanceof BSONRegExp) return 'regex';
  if (value instanceof BSONSymbol) return 'symbol';
  if (value instanceof Code) return value.scope ? 'javascriptWithScope' : 'javascript';
  if (value instanceof MinKey) return 'minKey';
  if (value instanceof MaxKey) return 'maxKey';
  return 'object';
}

/** The subtype whose length is written twice; deprecated, but still found in old data. */
export const OLD_BINARY_SUBTYPE = 2;

/** The numbers that `$type` takes for the names. */
export const BSON_TYPE_NUMBERS: Readonly<Record<string, number>> = {
  double: 1,
  string: 2,
  object: 3,
  array: 4,
  binData: 5,
  undefined: 6,
  objectId: 7,
  bool: 8,
  date: 9,
  null: 10,
  regex: 11,
  dbPointer: 12,
  javascript: 13,
  symbol: 14,
  javascriptWithScope: 15,
  int: 16,
  timestamp: 17,
  long: 18,
  decimal: 19,
  minKey: -1,
  maxKey: 127,
};

/** The place of the value's type in the order of BSON types; types of one rank compare by value. */
export function rankOf(value: Value): number {
  switch (typeof value) {
    case 'number':
    case 'bigint':
      return RANK.number;
    case 'string':
      return RANK.string;
    case 'boolean':
      return RANK.boolean;
    case 'undefined':
      return RANK.missing;
    default:
  }
  if (value === null) return RANK.null;
  if (Object.getPrototypeOf(value) === Object.prototype) return RANK.object;
  if (value instanceof Date) return RANK.date;
  if (value instanceof ObjectId) return RANK.objectId;
  if (Array.isArray(value)) return RANK.array;
  if (value instanceof BracketEdge) return value.rank;
  if (value instanceof Double || value instanceof Decimal128) return RANK.number;
  if (value instanceof Binary) return RANK.binary;
  if (value instanceof Timestamp) return RANK.timestamp;
  if (value instanceof BSONRegExp) return RANK.regex;
  if (value instanceof BSONSymbol) return RANK.string;
  if (value instanceof Code) return value.scope ? RANK.codeWithScope : RANK.code;
  return value instanceof MinKey ? RANK.minKey : value instanceof MaxKey ? RANK.maxKey : RANK.object;
}
