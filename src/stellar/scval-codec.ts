import { Address, nativeToScVal, scValToBigInt, xdr } from '@stellar/stellar-sdk';
import { PermanentError } from '../platform/errors';
import type { ContractValue } from './contract-value';

/** Deeper nesting than any contract of ours, shallower than what overflows the stack: event data is anyone's to choose. */
const MAX_DEPTH = 64;

const malformed = (cause: unknown): PermanentError =>
  new PermanentError('MALFORMED_CONTRACT_VALUE', 'the bytes are no XDR contract value', { cause });

const invalid = (type: string, cause?: unknown): PermanentError =>
  new PermanentError('INVALID_CONTRACT_VALUE', `a contract value of type ${type} is not valid`, { cause });

/** @throws PermanentError INVALID_CONTRACT_VALUE for a number out of range, a bad address or symbol. */
export function toScVal(value: ContractValue): xdr.ScVal {
  try {
    return buildScVal(value);
  } catch (error) {
    throw error instanceof PermanentError ? error : invalid(value.type, error);
  }
}

function buildScVal(value: ContractValue): xdr.ScVal {
  switch (value.type) {
    case 'void':
      return xdr.ScVal.scvVoid();
    case 'bool':
      return xdr.ScVal.scvBool(value.value);
    case 'u32':
      if (!inRange(BigInt(value.value), 0n, 2n ** 32n - 1n)) throw invalid('u32');
      return xdr.ScVal.scvU32(value.value);
    case 'i32':
      if (!inRange(BigInt(value.value), -(2n ** 31n), 2n ** 31n - 1n)) throw invalid('i32');
      return xdr.ScVal.scvI32(value.value);
    case 'u64':
    case 'i64':
    case 'u128':
    case 'i128':
    case 'u256':
    case 'i256': {
      const bits = BigInt(value.type.slice(1));
      const signed = value.type.startsWith('i');
      const low = signed ? -(2n ** (bits - 1n)) : 0n;
      const high = signed ? 2n ** (bits - 1n) - 1n : 2n ** bits - 1n;
      // The SDK wraps a value that is too large around instead of refusing it.
      if (!inRange(value.value, low, high)) throw invalid(value.type);
      return nativeToScVal(value.value, { type: value.type });
    }
    case 'symbol':
      if (!/^[A-Za-z0-9_]{0,32}$/.test(value.value)) throw invalid('symbol');
      return xdr.ScVal.scvSymbol(value.value);
    case 'string':
      return xdr.ScVal.scvString(value.value);
    case 'bytes':
      return xdr.ScVal.scvBytes(Buffer.from(value.value));
    case 'address':
      return Address.fromString(value.value).toScVal();
    case 'vec':
      return xdr.ScVal.scvVec(value.value.map(toScVal));
    case 'map':
      return xdr.ScVal.scvMap(
        value.value.map(
          (entry) => new xdr.ScMapEntry({ key: toScVal(entry.key), val: toScVal(entry.value) }),
        ),
      );
  }
}

const inRange = (value: bigint, low: bigint, high: bigint): boolean => value >= low && value <= high;

/** @throws PermanentError UNSUPPORTED_CONTRACT_VALUE for types that no contract function takes or returns. */
export function fromScVal(value: xdr.ScVal, depth = 0): ContractValue {
  if (depth > MAX_DEPTH) throw malformed(new RangeError(`nested deeper than ${MAX_DEPTH}`));
  const kind = value.switch();
  switch (kind.name) {
    case 'scvVoid':
      return { type: 'void' };
    case 'scvBool':
      return { type: 'bool', value: value.b() };
    case 'scvU32':
      return { type: 'u32', value: value.u32() };
    case 'scvI32':
      return { type: 'i32', value: value.i32() };
    case 'scvU64':
      return { type: 'u64', value: scValToBigInt(value) };
    case 'scvI64':
      return { type: 'i64', value: scValToBigInt(value) };
    case 'scvU128':
      return { type: 'u128', value: scValToBigInt(value) };
    case 'scvI128':
      return { type: 'i128', value: scValToBigInt(value) };
    case 'scvU256':
      return { type: 'u256', value: scValToBigInt(value) };
    case 'scvI256':
      return { type: 'i256', value: scValToBigInt(value) };
    case 'scvTimepoint':
      return { type: 'u64', value: value.timepoint().toBigInt() };
    case 'scvDuration':
      return { type: 'u64', value: value.duration().toBigInt() };
    case 'scvSymbol':
      return { type: 'symbol', value: value.sym().toString() };
    case 'scvString':
      return { type: 'string', value: value.str().toString() };
    case 'scvBytes':
      return { type: 'bytes', value: new Uint8Array(value.bytes()) };
    case 'scvAddress':
      return { type: 'address', value: Address.fromScAddress(value.address()).toString() };
    case 'scvVec':
      return { type: 'vec', value: (value.vec() ?? []).map((item) => fromScVal(item, depth + 1)) };
    case 'scvMap':
      return {
        type: 'map',
        value: (value.map() ?? []).map((entry) => ({
          key: fromScVal(entry.key(), depth + 1),
          value: fromScVal(entry.val(), depth + 1),
        })),
      };
    default:
      throw new PermanentError('UNSUPPORTED_CONTRACT_VALUE', `no contract value type for ${kind.name}`);
  }
}

/** @throws PermanentError for anything but one whole contract value. */
export function decodeContractValue(base64: string): ContractValue {
  let value: xdr.ScVal;
  try {
    const bytes = Buffer.from(base64, 'base64');
    // Node's decoder stops without a word at what is no base64.
    if (bytes.toString('base64') !== base64) throw new TypeError('not canonical base64');
    value = xdr.ScVal.fromXDR(bytes);
  } catch (error) {
    throw malformed(error);
  }
  return fromScVal(value);
}

export const encodeContractValue = (value: ContractValue): string => toScVal(value).toXDR('base64');

/** The XDR bytes of a value: what contracts hash and check signatures over. */
export const contractValueBytes = (value: ContractValue): Uint8Array =>
  new Uint8Array(toScVal(value).toXDR());
