import { explained } from '../../../src/randomness/contracts/refusal-names';
import { raffleErrors } from '../../../src/simnet/contracts/raffle-errors';
import { meaningOfRefusal, type RefusalMeaning } from '../../../src/randomness/contracts/raffle-contract';

describe('a contract’s refusal of a delivery', () => {
  test.each<[number | undefined, RefusalMeaning, string]>([
    [7, 'over', 'randomness was asked for already'],
    [8, 'over', 'nobody asked for it'],
    [23, 'over', 'the raffle has another status'],
    [61, 'over', 'the draw is complete'],
    [64, 'too_early', 'it comes too early'],
    [5, 'permanent', 'we are not authorized'],
    [6, 'permanent', 'no oracle is set'],
    [9, 'permanent', 'the fallback comes too early'],
    [21, 'permanent', 'its parameters are wrong'],
    [25, 'permanent', 'there is no such transition'],
    [59, 'permanent', 'a draw is in progress'],
    [undefined, 'permanent', 'it trapped without a code'],
  ])('by code %s is read as "%s": %s', (code, meaning) => {
    expect(meaningOfRefusal(code)).toBe(meaning);
  });

  test('is told with the name of its code', () => {
    expect(explained('contract error 64', 64)).toBe('contract error 64 (RandomnessTooEarly)');
    expect(explained('contract error 5', 5)).toContain('(NotAuthorized): account or key');
  });

  test('of which every published code has one', () => {
    for (const [name, code] of Object.entries(raffleErrors)) {
      if (name === 'raffleNotFound') continue;
      expect(explained('', code).toLowerCase()).toContain(`(${name.toLowerCase()})`);
    }
  });

  test.each([undefined, 1, 999])('is left as it is where nothing is known of its code: %s', (code) => {
    expect(explained('it was refused', code)).toBe('it was refused');
  });
});
