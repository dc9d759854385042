import { Binary, BSONRegExp, BSONSymbol, Code, Decimal128, Double, MaxKey, MinKey, Timestamp } from 'mongodb';
import { namesOf } from './field-order';
import type { Document, Value } from './values';
import { isInt32, OLD_BINARY_SUBTYPE, ObjectId } from './values';

/** A document that has been encoded already, to be copied into a reply as it is. */
export class EncodedDocument {
  constructor(readonly bytes: Buffer) {}
}

/** What a reply may hold: values, and documents encoded ahead to know their size. */
export type Encodable = Value | EncodedDocument | Encodable[] | { [field: string]: Encodable };

const SHORT_TEXT = 48;

/** Appends BSON to a buffer that grows. */
export class BsonWriter {
  #bytes: Buffer;
  #at = 0;

  constructor(capacity = 1024) {
    this.#bytes = Buffer.allocUnsafe(capacity);
  }

  get length(): number {
    return this.#at;
  }

  reset(): void {
    this.#at = 0;
  }

  /** A view of what was written; later writes may change it. */
  view(): Buffer {
    return this.#bytes.subarray(0, this.#at);
  }

  int32(value: number): void {
    this.#reserve(4);
    this.#at = this.#bytes.writeInt32LE(value, this.#at);
  }

  setInt32(value: number, at: number): void {
    this.#bytes.writeInt32LE(value, at);
  }

  byte(value: number): void {
    this.#reserve(1);
    this.#bytes[this.#at++] = value;
  }

  raw(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  document(document: { readonly [field: string]: Encodable }): void {
    const start = this.#at;
    this.int32(0);
    for (const name of namesOf(document as Document)) this.#element(name, document[name]);
    this.byte(0);
    this.setInt32(this.#at - start, start);
  }

  #array(items: readonly Encodable[]): void {
    const start = this.#at;
    this.int32(0);
    for (let i = 0; i < items.length; i++) this.#element(String(i), items[i] ?? null);
    this.byte(0);
    this.setInt32(this.#at - start, start);
  }

  #reserve(length: number): void {
    const needed = this.#at + length;
    if (needed <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.max(needed, this.#bytes.length * 2));
    this.#bytes.copy(grown, 0, 0, this.#at);
    this.#bytes = grown;
  }

  #text(text: string): void {
    const { length } = text;
    this.#reserve(length * 3);
    if (length <= SHORT_TEXT) {
      const bytes = this.#bytes;
      const start = this.#at;
      let i = 0;
      for (; i < length; i++) {
        const code = text.charCodeAt(i);
        if (code > 127) break;
        bytes[start + i] = code;
      }
      if (i === length) {
        this.#at += length;
        return;
      }
    }
    this.#at += this.#bytes.write(text, this.#at, 'utf8');
  }

  #cstring(text: string): void {
    this.#text(text);
    this.byte(0);
  }

  #string(text: string): void {
    const start = this.#at;
    this.int32(0);
    this.#text(text);
    this.byte(0);
    this.setInt32(this.#at - start - 4, start);
  }

  #head(type: number, name: string): void {
    this.byte(type);
    this.#cstring(name);
  }

  #double(name: string, value: number): void {
    this.#head(0x01, name);
    this.#reserve(8);
    this.#at = this.#bytes.writeDoubleLE(value, this.#at);
  }

  #int64(type: number, name: string, value: bigint): void {
    this.#head(type, name);
    this.#reserve(8);
    this.#at = this.#bytes.writeBigInt64LE(value, this.#at);
  }

  #element(name: string, value: Encodable): void {
    switch (typeof value) {
      case 'undefined':
        return;
      case 'string':
        this.#head(0x02, name);
        this.#string(value);
        return;
      case 'number':
        if (isInt32(value)) {
          this.#head(0x10, name);
          this.int32(value);
        } else {
          this.#double(name, value);
        }
        return;
      case 'boolean':
        this.#head(0x08, name);
        this.byte(value ? 1 : 0);
        return;
      case 'bigint':
        this.#int64(0x12, name, value);
        return;
      default:
        this.#object(name, value);
    }
  }

  #object(name: string, value: Exclude<Encodable, undefined | string | number | boolean | bigint>): void {
    if (value === null) {
      this.#head(0x0a, name);
    } else if (Array.isArray(value)) {
      this.#head(0x04, name);
      this.#array(value);
    } else if (value instanceof Date) {
      this.#int64(0x09, name, BigInt(Number.isNaN(value.getTime()) ? 0 : value.getTime()));
    } else if (value instanceof ObjectId) {
      this.#head(0x07, name);
      this.#reserve(12);
      value.write(this.#bytes, this.#at);
      this.#at += 12;
    } else if (value instanceof EncodedDocument) {
      this.#head(0x03, name);
      this.raw(value.bytes);
    } else if (value instanceof Double) {
      this.#double(name, value.value);
    } else if (value instanceof Decimal128) {
      this.#head(0x13, name);
      this.raw(value.bytes);
    } else if (value instanceof Binary) {
      this.#binary(name, value);
    } else if (value instanceof Timestamp) {
      this.#head(0x11, name);
      this.int32(value.i | 0);
      this.int32(value.t | 0);
    } else if (value instanceof BSONRegExp) {
      this.#head(0x0b, name);
      this.#cstring(value.pattern);
      this.#cstring(value.options);
    } else if (value instanceof BSONSymbol) {
      this.#head(0x0e, name);
      this.#string(value.value);
    } else if (value instanceof Code) {
      this.#code(name, value);
    } else if (value instanceof MinKey) {
      this.#head(0xff, name);
    } else if (value instanceof MaxKey) {
      this.#head(0x7f, name);
    } else {
      this.#head(0x03, name);
      this.document(value as Document);
    }
  }

  #binary(name: string, value: Binary): void {
    const length = value.length();
    this.#head(0x05, name);
    const old = value.sub_type === OLD_BINARY_SUBTYPE;
    this.int32(old ? length + 4 : length);
    this.byte(value.sub_type);
    if (old) this.int32(length);
    this.raw(value.buffer.subarray(0, length));
  }

  #code(name: string, value: Code): void {
    if (!value.scope) {
      this.#head(0x0d, name);
      this.#string(value.code);
      return;
    }
    this.#head(0x0f, name);
    const start = this.#at;
    this.int32(0);
    this.#string(value.code);
    this.document(value.scope);
    this.setInt32(this.#at - start, start);
  }
}

const scratch = new BsonWriter(64 * 1024);

/** The document's bytes, in memory of their own. */
export function encodeDocument(document: Document): EncodedDocument {
  scratch.reset();
  scratch.document(document);
  return new EncodedDocument(Buffer.from(scratch.view()));
}
