import { Keypair, StrKey } from '@stellar/stellar-sdk';
import { describeConfigProblems, readConfig } from '../../../src/platform/config';
import { strkeyForms, strkeyProblem } from '../../../src/platform/settings/strkey';
import { validEnvironment } from '../../support/environment';

const contract = (fill: number): string => StrKey.encodeContract(Buffer.alloc(32, fill));
const secret = (fill: number): string => Keypair.fromRawEd25519Seed(Buffer.alloc(32, fill)).secret();
/** One letter of the middle replaced by another of the alphabet. */
const mistyped = (key: string): string => {
  const middle = key[30] === 'A' ? 'B' : 'A';
  return `${key.slice(0, 30)}${middle}${key.slice(31)}`;
};

const CHECKSUM = /is not a valid [CS]… (contract id|secret key): its checksum does not fit/;

describe('keys and ids in the configuration', () => {
  test.each([
    ...[0, 1, 127, 255].map((fill) => [strkeyForms.contractId, contract(fill)] as const),
    ...[0, 1, 127, 255].map((fill) => [strkeyForms.secretKey, secret(fill)] as const),
    [strkeyForms.contractId, 'CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSC'] as const,
  ])('one that the SDK makes is taken', (form, key) => {
    expect(strkeyProblem(form, key)).toBeNull();
  });

  test('a wrong letter anywhere is noticed', () => {
    const key = secret(9);
    for (let place = 1; place < key.length; place++) {
      const other = key[place] === 'Q' ? 'R' : 'Q';
      const wrong = `${key.slice(0, place)}${other}${key.slice(place + 1)}`;
      expect(strkeyProblem(strkeyForms.secretKey, wrong)).toMatch(CHECKSUM);
    }
  });

  test('two letters that changed places are noticed', () => {
    const key = contract(1);
    const at = Array.from(key).findIndex((letter, index) => index > 0 && letter !== key[index + 1]);
    const swapped = `${key.slice(0, at)}${key[at + 1]}${key[at]}${key.slice(at + 2)}`;
    expect(strkeyProblem(strkeyForms.contractId, swapped)).toMatch(CHECKSUM);
  });

  test.each(['', 'C', secret(1), contract(1).slice(1), `${contract(1)}A`, contract(1).toLowerCase()])(
    'what is no contract id at all is told apart: %#',
    (text) => {
      expect(strkeyProblem(strkeyForms.contractId, text)).toBe('expected a C… contract id');
    },
  );

  test.each([
    ['RAFFLE_CONTRACT_ID', mistyped(contract(4))],
    ['RAFFLE_FACTORY_CONTRACT_ID', mistyped(contract(4))],
    ['STELLAR_REGISTRY_CONTRACT_ID', mistyped(contract(4))],
    ['STELLAR_ORACLE_CONTRACT_ID', mistyped(contract(4))],
    ['STELLAR_PROVENANCE_CONTRACT_ID', mistyped(contract(4))],
    ['EVENT_CONTRACT_IDS', `${contract(4)}, ${mistyped(contract(5))}`],
    ['STELLAR_ORACLE_SECRET_KEY', mistyped(secret(4))],
    ['ORACLE_SECRET_KEY', mistyped(secret(4))],
    ['STELLAR_CHANNEL_SECRETS', `${secret(4)},${mistyped(secret(5))}`],
  ])('a typo in %s is a problem of the configuration, without its value', (name, text) => {
    const result = readConfig({ ...validEnvironment(), [name]: text });
    if (result.kind === 'valid') throw new Error('it was taken');
    expect(result.problems).toEqual([{ variable: name, problem: expect.stringMatching(CHECKSUM) as string }]);
    const report = describeConfigProblems(result.problems);
    for (const key of text.split(/[, ]+/)) expect(report).not.toContain(key);
  });

  test('a list says which of its keys is wrong, and an optional key may be missing', () => {
    const result = readConfig({
      ...validEnvironment(),
      EVENT_CONTRACT_IDS: [contract(1), mistyped(contract(2)), 'none'].join(','),
    });
    expect(result).toMatchObject({
      kind: 'invalid',
      problems: [
        {
          problem:
            'key 2 of 3: is not a valid C… contract id: its checksum does not fit, so a letter is wrong; ' +
            'key 3 of 3: expected a C… contract id',
        },
      ],
    });
    expect(readConfig({ ...validEnvironment(), RAFFLE_CONTRACT_ID: '' }).kind).toBe('valid');
  });
});
