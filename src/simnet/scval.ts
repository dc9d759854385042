import { Address, nativeToScVal, scValToBigInt, scValToNative, xdr } from '@stellar/stellar-sdk';
import { HostError } from './host-error';
import { memoized } from './memoized';

export const toVal = {
  void: (): xdr.ScVal => xdr.ScVal.scvVoid(),
  bool: (value: boolean): xdr.ScVal => xdr.ScVal.scvBool(value),
  symbol: (value: string): xdr.ScVal => xdr.ScVal.scvSymbol(value),
  string: (value: string): xdr.ScVal => xdr.ScVal.scvString(value),
  u32: (value: number): xdr.ScVal => xdr.ScVal.scvU32(value),
  u64: (value: bigint): xdr.ScVal => nativeToScVal(value, { type: 'u64' }),
  i128: (value: bigint): xdr.ScVal => nativeToScVal(value, { type: 'i128' }),
  bytes: (value: Uint8Array): xdr.ScVal => xdr.ScVal.scvBytes(Buffer.from(value)),
  address: memoized((value): xdr.ScVal => Address.fromString(value).toScVal()),
  vec: (values: xdr.ScVal[]): xdr.ScVal => xdr.ScVal.scvVec(values),
  /** A Rust `Option`: the value itself, or void. */
  option: (value: xdr.ScVal | undefined): xdr.ScVal => value ?? xdr.ScVal.scvVoid(),
  /** A contract struct: a map whose symbol keys stand in byte order, as the host demands. */
  struct: (fields: Record<string, xdr.ScVal>): xdr.ScVal =>
    xdr.ScVal.scvMap(
      Object.keys(fields)
        .sort()
        .map(
          (name) => new xdr.ScMapEntry({ key: xdr.ScVal.scvSymbol(name), val: fields[name] ?? toVal.void() }),
        ),
    ),
};

export type Decoder<T> = (value: xdr.ScVal) => T;

const expectType = (value: xdr.ScVal, type: string): void => {
  if (value.switch().name !== type) throw HostError.unexpectedType(type, value.switch().name);
};

/** Decoders of contract arguments; a wrong type ends the call as it does in the real host. */
export const fromVal = {
  any: (value: xdr.ScVal): xdr.ScVal => value,
  bool: (value: xdr.ScVal): boolean => {
    expectType(value, 'scvBool');
    return value.b();
  },
  u32: (value: xdr.ScVal): number => {
    expectType(value, 'scvU32');
    return value.u32();
  },
  u64: (value: xdr.ScVal): bigint => {
    expectType(value, 'scvU64');
    return scValToBigInt(value);
  },
  i128: (value: xdr.ScVal): bigint => {
    expectType(value, 'scvI128');
    return scValToBigInt(value);
  },
  string: (value: xdr.ScVal): string => {
    expectType(value, 'scvString');
    return value.str().toString();
  },
  address: (value: xdr.ScVal): string => {
    expectType(value, 'scvAddress');
    return Address.fromScVal(value).toString();
  },
  bytes: (value: xdr.ScVal): Buffer => {
    expectType(value, 'scvBytes');
    return value.bytes();
  },
  bytesN:
    (length: number): Decoder<Buffer> =>
    (value) => {
      const bytes = fromVal.bytes(value);
      if (bytes.length !== length) throw HostError.unexpectedSize(length, bytes.length);
      return bytes;
    },
  /** A Rust `Option`: void is none. */
  option:
    <T>(decode: Decoder<T>): Decoder<T | undefined> =>
    (value) =>
      value.switch().name === 'scvVoid' ? undefined : decode(value),
  vec:
    <T>(item: Decoder<T>): Decoder<T[]> =>
    (value) => {
      expectType(value, 'scvVec');
      return (value.vec() ?? []).map(item);
    },
  struct:
    <T extends Record<string, unknown>>(fields: { [K in keyof T]: Decoder<T[K]> }): Decoder<T> =>
    (value) => {
      expectType(value, 'scvMap');
      const entries = new Map(
        (value.map() ?? []).map((entry) => [String(scValToNative(entry.key())), entry.val()]),
      );
      const decoded: Partial<T> = {};
      for (const name of Object.keys(fields) as (keyof T & string)[]) {
        const field = entries.get(name);
        if (!field) throw HostError.missingValue('object', `struct field ${name} is missing`);
        decoded[name] = fields[name](field);
      }
      if (entries.size !== Object.keys(fields).length)
        throw HostError.unexpectedSize(Object.keys(fields).length, entries.size);
      return decoded as T;
    },
};
