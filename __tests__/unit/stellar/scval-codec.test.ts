import fc from 'fast-check';
import { Keypair, StrKey, xdr } from '@stellar/stellar-sdk';
import { PermanentError } from '../../../src/platform/errors';
import { contractValue, type ContractValue } from '../../../src/stellar/contract-value';
import {
  contractValueBytes,
  decodeContractValue,
  encodeContractValue,
} from '../../../src/stellar/scval-codec';

const bigint = (bits: bigint, signed: boolean) =>
  fc.bigInt(
    signed ? { min: -(2n ** (bits - 1n)), max: 2n ** (bits - 1n) - 1n } : { min: 0n, max: 2n ** bits - 1n },
  );
const integer = (type: 'u64' | 'i64' | 'u128' | 'i128' | 'u256' | 'i256') =>
  bigint(BigInt(type.slice(1)), type.startsWith('i')).map((value): ContractValue => ({ type, value }));

const { value: anyValue } = fc.letrec<{ value: ContractValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constant<ContractValue>({ type: 'void' }),
    fc.boolean().map(contractValue.bool),
    fc.integer({ min: 0, max: 2 ** 32 - 1 }).map(contractValue.u32),
    fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }).map((value): ContractValue => ({ type: 'i32', value })),
    integer('u64'),
    integer('i64'),
    integer('u128'),
    integer('i128'),
    integer('u256'),
    integer('i256'),
    fc.stringMatching(/^[A-Za-z0-9_]{0,32}$/).map(contractValue.symbol),
    fc.string({ unit: 'grapheme' }).map(contractValue.string),
    fc.uint8Array().map(contractValue.bytes),
    fc
      .uint8Array({ minLength: 32, maxLength: 32 })
      .map((raw) => contractValue.address(StrKey.encodeContract(Buffer.from(raw)))),
    fc
      .uint8Array({ minLength: 32, maxLength: 32 })
      .map((raw) => contractValue.address(StrKey.encodeEd25519PublicKey(Buffer.from(raw)))),
    fc.array(tie('value'), { maxLength: 3 }).map(contractValue.vec),
    fc
      .array(fc.record({ key: tie('value'), value: tie('value') }), { maxLength: 3 })
      .map((value): ContractValue => ({ type: 'map', value })),
  ),
}));

describe('contract values as XDR', () => {
  it('come back as they went', () => {
    fc.assert(
      fc.property(anyValue, (value) => {
        expect(decodeContractValue(encodeContractValue(value))).toEqual(value);
      }),
      { numRuns: 300 },
    );
  });

  it.each<[string, ContractValue]>([
    ['a u32 that is too large', contractValue.u32(2 ** 32)],
    ['a fraction', contractValue.u32(1.5)],
    ['a negative u64', contractValue.u64(-1n)],
    ['a u64 that is too large', contractValue.u64(2n ** 64n)],
    ['an i128 that is too large', contractValue.i128(2n ** 127n)],
    [
      'an address with a wrong checksum',
      contractValue.address(`${Keypair.random().publicKey().slice(0, 55)}0`),
    ],
    ['a symbol with a space', contractValue.symbol('not a symbol')],
    ['a symbol that is too long', contractValue.symbol('a'.repeat(33))],
  ])('refuses %s', (_name, value) => {
    expect(() => encodeContractValue(contractValue.vec([value]))).toThrow(PermanentError);
  });

  it.each([
    ['no base64', '%%%'],
    ['nothing', ''],
    ['bytes of something else', 'AAAA'],
    ['a value and more behind it', `${encodeContractValue({ type: 'void' })}AAAA`],
  ])('calls %s malformed', (_name, text) => {
    expect(() => decodeContractValue(text)).toThrow(
      expect.objectContaining({ code: 'MALFORMED_CONTRACT_VALUE' }) as Error,
    );
  });

  it('survives nesting that is meant to overflow the stack', () => {
    let value = xdr.ScVal.scvVoid();
    for (let depth = 0; depth < 200; depth += 1) value = xdr.ScVal.scvVec([value]);
    expect(() => decodeContractValue(value.toXDR('base64'))).toThrow(PermanentError);
  });

  it('sorts the fields of a struct, as the host demands', () => {
    const one = contractValueBytes(
      contractValue.struct({ b: contractValue.u32(1), a: contractValue.u32(2) }),
    );
    const other = contractValueBytes(
      contractValue.struct({ a: contractValue.u32(2), b: contractValue.u32(1) }),
    );
    expect(one).toEqual(other);
  });
});
