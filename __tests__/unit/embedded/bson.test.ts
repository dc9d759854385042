import fc from 'fast-check';
import {
  BSON,
  Binary,
  BSONRegExp,
  Code,
  Decimal128,
  Double,
  Int32,
  Long,
  MaxKey,
  MinKey,
  ObjectId,
  Timestamp,
} from 'mongodb';
import { compareValues, equalValues, keyOf } from '../../../src/embedded/bson/compare';
import { decodeDocument, MalformedBsonError } from '../../../src/embedded/bson/decode';
import { encodeDocument } from '../../../src/embedded/bson/encode';
import type { Value } from '../../../src/embedded/bson/values';
import { at } from '../../../src/embedded/bson/values';

const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });

const leaf = fc.oneof(
  fc.integer().map((n) => new Int32(n)),
  fc.double().map((n) => new Double(n)),
  fc.integer().map((n) => new Double(n)),
  int64.map((n) => Long.fromBigInt(n)),
  fc.string({ unit: 'grapheme' }),
  fc.constant(null),
  fc.boolean(),
  fc.date({ noInvalidDate: true }),
  fc.uint8Array({ minLength: 12, maxLength: 12 }).map((bytes) => new ObjectId(bytes)),
  fc.uint8Array().map((bytes) => new Binary(bytes, 0)),
  fc.uint8Array().map((bytes) => new Binary(bytes, 2)),
  fc
    .constantFrom('1.10', '-0', '1E+3', 'NaN', 'Infinity', '9.999E-30', '42')
    .map((text) => Decimal128.fromString(text)),
  fc.record({ t: fc.nat(), i: fc.nat() }, { noNullPrototype: true }).map((parts) => new Timestamp(parts)),
  fc.constantFrom(
    new BSONRegExp('^a.b', 'im'),
    new Code('f()'),
    new Code('f()', { x: 1 }),
    new MinKey(),
    new MaxKey(),
  ),
);

// Names like integers would be put first by JavaScript's own objects, in the driver too.
const name = fc
  .string({ minLength: 1, maxLength: 12 })
  .filter((each) => !/^\d+$/.test(each) && !each.includes('\0'));

const { any } = fc.letrec((tie) => ({
  any: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    leaf,
    fc.array(tie('any'), { maxLength: 4 }),
    fc.dictionary(name, tie('any'), { maxKeys: 4, noNullPrototype: true }),
  ),
}));

const decode = (bytes: Uint8Array) => decodeDocument(Buffer.from(bytes), 0).document;
const valueOf = (original: unknown): Value => decode(BSON.serialize({ v: original })).v;

describe('BSON', () => {
  it('goes through unchanged, to the last byte', () => {
    fc.assert(
      fc.property(fc.dictionary(name, any, { maxKeys: 6, noNullPrototype: true }), (document) => {
        const bytes = BSON.serialize(document);
        expect(Buffer.compare(encodeDocument(decode(bytes)).bytes, bytes)).toBe(0);
      }),
      { numRuns: 250 },
    );
  });

  it('keeps apart 1 as an int32, a double and an int64, and -0', () => {
    const document = {
      int: new Int32(1),
      double: new Double(1),
      long: Long.fromNumber(1),
      zero: new Double(-0),
    };
    const back = BSON.deserialize(encodeDocument(decode(BSON.serialize(document))).bytes, {
      promoteValues: false,
    });
    expect(back.int).toBeInstanceOf(Int32);
    expect(back.double).toBeInstanceOf(Double);
    expect(back.long).toBeInstanceOf(Long);
    expect(Object.is((back.zero as Double).value, -0)).toBe(true);
  });

  it('takes field names that every object inherits', () => {
    const bytes = BSON.serialize(
      JSON.parse('{"__proto__": 1, "constructor": 2, "toString": {"hasOwnProperty": 3}}') as object,
    );
    expect(Buffer.compare(encodeDocument(decode(bytes)).bytes, bytes)).toBe(0);
  });

  it('refuses bytes that are cut short or changed, or reads them as something else, and never fails otherwise', () => {
    fc.assert(
      fc.property(
        fc.dictionary(name, any, { maxKeys: 4, noNullPrototype: true }),
        fc.nat(),
        fc.nat(255),
        (document, where, byte) => {
          const bytes = Buffer.from(BSON.serialize(document));
          bytes[where % bytes.length] = byte;
          for (const each of [bytes, bytes.subarray(0, where % bytes.length)]) {
            try {
              decodeDocument(each, 0);
            } catch (error) {
              expect(error).toBeInstanceOf(MalformedBsonError);
            }
          }
        },
      ),
      { numRuns: 250 },
    );
  });

  it('refuses nesting without end', () => {
    let document: object = {};
    for (let i = 0; i < 300; i++) document = { d: document };
    expect(() => decode(BSON.serialize(document))).toThrow(MalformedBsonError);
  });
});

describe('the order of values', () => {
  it('is the one of the types, from MinKey to MaxKey', () => {
    const ascending = [
      new MinKey(), null, new Double(NaN), new Double(-Infinity), Long.fromNumber(-5), new Int32(0), Decimal128.fromString('0.5'), new Double(1e300),
      '', 'a', 'b', {}, { a: 1 }, { a: 2 }, { b: 0 }, [], [1], [1, 2], new Binary(Buffer.from('z')), new Binary(Buffer.from('aa')),
      new ObjectId('00'.repeat(12)), new ObjectId('ff'.repeat(12)), false, true, new Date(-1), new Date(1),
      new Timestamp({ t: 1, i: 2 }), new BSONRegExp('a', ''), new MaxKey(),
    ].map(valueOf); // prettier-ignore
    for (let i = 0; i + 1 < ascending.length; i++) {
      expect([i, Math.sign(compareValues(at(ascending, i), at(ascending, i + 1)))]).toEqual([i, -1]);
    }
  });

  it('is total, and equal keys are those of equal values', () => {
    const value = any.map(valueOf);
    fc.assert(
      fc.property(value, value, value, (a, b, c) => {
        expect(Math.sign(compareValues(a, b))).toBe(-Math.sign(compareValues(b, a)) + 0);
        expect(compareValues(a, a)).toBe(0);
        if (compareValues(a, b) <= 0 && compareValues(b, c) <= 0)
          expect(compareValues(a, c)).toBeLessThanOrEqual(0);
        expect(keyOf(a) === keyOf(b)).toBe(equalValues(a, b));
      }),
      { numRuns: 250 },
    );
  });

  it('compares numbers of different types exactly', () => {
    const one = ['1', '1.0', '10E-1'].map((text) => Decimal128.fromString(text));
    const ones = [new Int32(1), new Double(1), Long.fromNumber(1), ...one].map(valueOf);
    for (const a of ones)
      for (const b of ones) expect([equalValues(a, b), keyOf(a) === keyOf(b)]).toEqual([true, true]);
    expect(compareValues(2n ** 53n + 1n, 2 ** 53)).toBeGreaterThan(0);
    expect(compareValues(valueOf(Decimal128.fromString('0.1')), 0.1)).toBeLessThan(0);
    expect(compareValues(valueOf(Decimal128.fromString('1E+400')), Infinity)).toBeLessThan(0);
    expect(compareValues(valueOf(Decimal128.fromString('1E+400')), Number.MAX_VALUE)).toBeGreaterThan(0);
  });

  it('is that of UTF-8 bytes for strings, where code units differ from it', () => {
    expect(compareValues('\u{1f422}', '\uffee')).toBeGreaterThan(0);
  });
});
