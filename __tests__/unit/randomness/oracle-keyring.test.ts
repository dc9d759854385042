import { Keypair } from '@stellar/stellar-sdk';
import type { Clock } from '../../../src/platform/clock';
import { PermanentError } from '../../../src/platform/errors';
import { silentLogger } from '../../../src/platform/logger';
import { OracleKeyring } from '../../../src/randomness/seeds/oracle-keyring';
import { signerFromSecret, type Signer } from '../../../src/stellar/keys';

const signer = (): Signer => signerFromSecret(Keypair.random().secret());
const DAY = 86_400_000;

function keyring(overrides: Partial<ConstructorParameters<typeof OracleKeyring>[0]> = {}) {
  let now = 100 * DAY;
  const clock: Clock = { now: () => now, monotonicMs: () => now };
  const current = signer();
  const previous = { signer: signer(), rotatedAtMs: now };
  const logger = silentLogger();
  const warn = jest.spyOn(logger, 'warn');
  const ring = new OracleKeyring({
    current,
    previous,
    graceMs: DAY,
    maxAgeMs: 90 * DAY,
    clock,
    logger,
    ...overrides,
  });
  return { ring, current, previous, warn, pass: (ms: number) => (now += ms) };
}

describe('the oracle keyring', () => {
  it('signs with the key of the day a job came in, while the grace lasts', () => {
    const { ring, current, previous, pass } = keyring();
    expect(ring.signerFor(previous.signer.publicKey)).toBe(previous.signer);
    expect(ring.activePublicKeys).toEqual([current.publicKey, previous.signer.publicKey]);
    pass(DAY + 1);
    expect(ring.signerFor(previous.signer.publicKey)).toBe(current);
    expect(ring.activePublicKeys).toEqual([current.publicKey]);
  });

  it('loses no job of a key it never knew', () => {
    const { ring, current, warn } = keyring();
    expect(ring.signerFor(signer().publicKey)).toBe(current);
    expect(warn).toHaveBeenCalledTimes(1);
  });

  it('warns of an old key', () => {
    const young = keyring({ createdAtMs: 50 * DAY });
    expect(young.ring.checkAge()).toEqual({ ageMs: 50 * DAY, tooOld: false });
    expect(young.warn).not.toHaveBeenCalled();
    const old = keyring({ createdAtMs: 1 * DAY });
    expect(old.ring.checkAge()).toEqual({ ageMs: 99 * DAY, tooOld: true });
    expect(old.warn).toHaveBeenCalledTimes(1);
    expect(keyring().ring.checkAge()).toBeNull();
  });

  it('refuses a rotation to the same key', () => {
    const same = signer();
    expect(() => keyring({ current: same, previous: { signer: same, rotatedAtMs: 0 } })).toThrow(
      PermanentError,
    );
  });

  it('derives the PRNG secret once a key, and asks again after a failure', async () => {
    const real = signer();
    const sign = jest
      .fn<Promise<Uint8Array>, [Uint8Array]>()
      .mockRejectedValueOnce(new Error('key service down'))
      .mockImplementation((bytes) => real.sign(bytes));
    const current: Signer = { publicKey: real.publicKey, sign };
    const { ring } = keyring({ current });
    await expect(ring.prngSecretOf(current)).rejects.toThrow('key service down');
    const secret = await ring.prngSecretOf(current);
    expect(await ring.prngSecretOf(current)).toBe(secret);
    expect(secret).toHaveLength(32);
    expect(sign).toHaveBeenCalledTimes(2);
  });
});
