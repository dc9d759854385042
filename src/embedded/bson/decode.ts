import { isUtf8 } from 'node:buffer';
import { Binary, BSONRegExp, BSONSymbol, Code, Decimal128, MaxKey, MinKey, Timestamp } from 'mongodb';
import { FieldOrder } from './field-order';
import type { Document, Value } from './values';
import { double, OLD_BINARY_SUBTYPE, ObjectId, setField } from './values';

/** The bytes are not BSON; the connection they came on can't be trusted to be in step any more. */
export class MalformedBsonError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'MalformedBsonError';
  }
}

const MAX_DEPTH = 200;
const MAX_INTERNED_BYTES = 32;
const INTERN_SLOTS = 8192;

/** Decoding would put another character for what isn't UTF-8, and so store what nobody sent. */
function textOf(bytes: Buffer, from: number, to: number): string {
  if (!isUtf8(bytes.subarray(from, to))) throw new MalformedBsonError('a text is not UTF-8');
  return bytes.toString('utf8', from, to);
}

/** Field names and short values repeat in every document; one shared string each saves memory and the work to make it. */
class InternTable {
  readonly #strings = new Array<string | undefined>(INTERN_SLOTS);

  get(bytes: Buffer, from: number, to: number): string {
    const length = to - from;
    let hash = 2166136261;
    for (let i = from; i < to; i++) {
      const byte = bytes[i] as number;
      if (byte > 127) return textOf(bytes, from, to);
      hash = Math.imul(hash ^ byte, 16777619);
    }
    const slot = (hash ^ (hash >>> 15)) & (INTERN_SLOTS - 1);
    const known = this.#strings[slot];
    if (known?.length === length) {
      let i = 0;
      while (i < length && known.charCodeAt(i) === bytes[from + i]) i++;
      if (i === length) return known;
    }
    const made = bytes.toString('latin1', from, to);
    this.#strings[slot] = made;
    return made;
  }
}

const names = new InternTable();
const values = new InternTable();

class Reader {
  constructor(
    readonly bytes: Buffer,
    public at: number,
  ) {}

  int32(): number {
    const value = this.bytes.readInt32LE(this.at);
    this.at += 4;
    return value;
  }

  cstring(): string {
    const end = this.bytes.indexOf(0, this.at);
    if (end < 0) throw new MalformedBsonError('a name is not terminated');
    const text = names.get(this.bytes, this.at, end);
    this.at = end + 1;
    return text;
  }

  name(): string {
    const { bytes } = this;
    let end = this.at;
    while (bytes[end] !== 0) {
      if (end >= bytes.length) throw new MalformedBsonError('a field name is not terminated');
      end++;
    }
    const text = names.get(bytes, this.at, end);
    this.at = end + 1;
    return text;
  }

  string(): string {
    const length = this.int32();
    const end = this.at + length - 1;
    if (length < 1 || this.bytes[end] !== 0) throw new MalformedBsonError('a string has a wrong length');
    const text =
      length <= MAX_INTERNED_BYTES ? values.get(this.bytes, this.at, end) : textOf(this.bytes, this.at, end);
    this.at = end + 1;
    return text;
  }

  document(depth: number): Document {
    const end = this.#enter(depth);
    const document: Document = {};
    const order = new FieldOrder();
    for (let type = this.#type(end); type !== 0; type = this.#type(end)) {
      const name = this.name();
      order.note(name, document);
      setField(document, name, this.#value(type, depth));
    }
    order.keep(document);
    return document;
  }

  array(depth: number): Value[] {
    const end = this.#enter(depth);
    const items: Value[] = [];
    for (let type = this.#type(end); type !== 0; type = this.#type(end)) {
      this.#skipName();
      items.push(this.#value(type, depth));
    }
    return items;
  }

  #enter(depth: number): number {
    if (depth > MAX_DEPTH) throw new MalformedBsonError(`nested more than ${MAX_DEPTH} levels deep`);
    const start = this.at;
    const length = this.int32();
    const end = start + length;
    if (length < 5 || end > this.bytes.length)
      throw new MalformedBsonError(`a document says ${length} bytes`);
    return end;
  }

  /** The next element's type; 0 where the document ends, which has to be where its length said. */
  #type(end: number): number {
    const type = this.bytes[this.at++];
    if (type === undefined || this.at > end || (type === 0) !== (this.at === end)) {
      throw new MalformedBsonError('a document does not end where its length says');
    }
    return type;
  }

  #skipName(): void {
    const end = this.bytes.indexOf(0, this.at);
    if (end < 0) throw new MalformedBsonError('an array index is not terminated');
    this.at = end + 1;
  }

  #take(length: number): number {
    const start = this.at;
    if (length < 0 || start + length > this.bytes.length) {
      throw new MalformedBsonError('a value reaches past the end');
    }
    this.at += length;
    return start;
  }

  #value(type: number, depth: number): Value {
    switch (type) {
      case 0x01:
        return double(this.bytes.readDoubleLE(this.#take(8)));
      case 0x02:
        return this.string();
      case 0x03:
        return this.document(depth + 1);
      case 0x04:
        return this.array(depth + 1);
      case 0x05:
        return this.#binary();
      case 0x07:
        return ObjectId.read(this.bytes, this.#take(12));
      case 0x08:
        return this.bytes[this.#take(1)] === 1;
      case 0x09:
        return new Date(Number(this.bytes.readBigInt64LE(this.#take(8))));
      case 0x06:
      case 0x0a:
        return null;
      case 0x0b:
        return new BSONRegExp(this.cstring(), this.cstring());
      case 0x0d:
        return new Code(this.string());
      case 0x0e:
        return new BSONSymbol(this.string());
      case 0x0f:
        return this.#codeWithScope(depth);
      case 0x10:
        return this.int32();
      case 0x11: {
        const i = this.bytes.readUInt32LE(this.#take(4));
        return new Timestamp({ i, t: this.bytes.readUInt32LE(this.#take(4)) });
      }
      case 0x12:
        return this.bytes.readBigInt64LE(this.#take(8));
      case 0x13: {
        const start = this.#take(16);
        return new Decimal128(Uint8Array.from(this.bytes.subarray(start, start + 16)));
      }
      case 0x7f:
        return new MaxKey();
      case 0xff:
        return new MinKey();
      default:
        throw new MalformedBsonError(`0x${type.toString(16)} is no supported type`);
    }
  }

  #codeWithScope(depth: number): Code {
    const start = this.at;
    const length = this.int32();
    const code = new Code(this.string(), this.document(depth + 1));
    if (this.at !== start + length)
      throw new MalformedBsonError('a scope does not end where its length says');
    return code;
  }

  #binary(): Binary {
    let length = this.int32();
    const subtype = this.bytes[this.#take(1)] as number;
    if (subtype === OLD_BINARY_SUBTYPE) {
      const inner = this.int32();
      if (length !== inner + 4) throw new MalformedBsonError('binary data has two lengths that disagree');
      length = inner;
    }
    const start = this.#take(length);
    return new Binary(Uint8Array.from(this.bytes.subarray(start, start + length)), subtype);
  }
}

/**
 * Reads the document that starts at `offset`.
 * @returns the document, and where the next byte after it is
 * @throws MalformedBsonError
 */
export function decodeDocument(bytes: Buffer, offset: number): { document: Document; end: number } {
  const reader = new Reader(bytes, offset);
  try {
    return { document: reader.document(0), end: reader.at };
  } catch (error) {
    if (error instanceof MalformedBsonError) throw error;
    throw new MalformedBsonError(error instanceof Error ? error.message : String(error));
  }
}
