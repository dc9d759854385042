import { Keypair, StrKey } from '@stellar/stellar-sdk';
import { PermanentError } from '../../../src/platform/errors';
import {
  accountAddress,
  deriveChannelSigners,
  isAccountAddress,
  isSoundAddress,
  networkIdHash,
  rawPublicKey,
  signerFromSecret,
  verifySignature,
} from '../../../src/stellar/keys';

describe('keys', () => {
  const keypair = Keypair.fromRawEd25519Seed(Buffer.alloc(32, 7));

  it('sign exactly the bytes they are given', async () => {
    const signer = signerFromSecret(keypair.secret());
    const bytes = new Uint8Array(32).fill(1);
    const signature = await signer.sign(bytes);

    expect(signature).toEqual(new Uint8Array(keypair.sign(Buffer.from(bytes))));
    expect(verifySignature(signer.publicKey, bytes, signature)).toBe(true);
    expect(verifySignature(signer.publicKey, new Uint8Array(32).fill(2), signature)).toBe(false);
    expect(verifySignature('GARBAGE', bytes, signature)).toBe(false);
    expect(verifySignature(signer.publicKey, bytes, signature.slice(1))).toBe(false);
  });

  it.each([
    ['0100000000000000000000000000000000000000000000000000000000000000', 'order 1'],
    ['ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f', 'order 2'],
    ['0000000000000000000000000000000000000000000000000000000000000000', 'order 4'],
    ['0000000000000000000000000000000000000000000000000000000000000080', 'order 4, the other sign'],
    ['26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05', 'order 8'],
    ['26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85', 'order 8, the other sign'],
    ['c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a', 'order 8'],
    ['c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa', 'order 8, the other sign'],
    ['0100000000000000000000000000000000000000000000000000000000000080', 'order 1, written wrongly'],
    ['eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f', 'order 1, above the prime'],
    ['f0ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f', 'above the prime'],
  ])('prove nothing when anyone can sign for them: %s, %s', (hex) => {
    const address = accountAddress(Buffer.from(hex, 'hex'));
    // R = the identity, S = 0: fits any message under a key of small order that cancels out.
    const signature = Buffer.from(`01${'00'.repeat(63)}`, 'hex');
    const messages = Array.from({ length: 16 }, (_, index) => new Uint8Array([index]));
    expect(messages.some((message) => verifySignature(address, message, signature))).toBe(false);
    expect(isSoundAddress(address)).toBe(false);
  });

  it('of either sign are sound when they are somebody’s', () => {
    const raw = Array.from({ length: 8 }, (_, n) =>
      Keypair.fromRawEd25519Seed(Buffer.alloc(32, n)).rawPublicKey(),
    );
    expect(new Set(raw.map((key) => key[31]! >> 7)).size).toBe(2);
    for (const key of raw) expect(isSoundAddress(accountAddress(key))).toBe(true);
  });

  it('do not quote a secret that is wrong', () => {
    const wrong = `${keypair.secret().slice(0, 55)}A`;
    const attempt = (): unknown => signerFromSecret(wrong);
    expect(attempt).toThrow(PermanentError);
    expect(attempt).not.toThrow(wrong);
  });

  it('translate between addresses and raw keys', () => {
    expect(rawPublicKey(keypair.publicKey())).toEqual(new Uint8Array(keypair.rawPublicKey()));
    expect(accountAddress(rawPublicKey(keypair.publicKey()))).toBe(keypair.publicKey());
    expect(isAccountAddress(keypair.publicKey())).toBe(true);
    expect(isAccountAddress(StrKey.encodeContract(Buffer.alloc(32)))).toBe(false);
    expect(() => rawPublicKey(keypair.publicKey().toLowerCase())).toThrow(PermanentError);
  });

  it('derive the same channel accounts in every process, others on another network', () => {
    const derive = (network: string, count: number): string[] =>
      deriveChannelSigners(keypair.secret(), network, count).map((signer) => signer.publicKey);
    expect(derive('one', 3)).toEqual(derive('one', 5).slice(0, 3));
    expect(new Set([...derive('one', 3), ...derive('two', 3), keypair.publicKey()]).size).toBe(7);
  });

  it('hash the passphrase to the network id', () => {
    expect(Buffer.from(networkIdHash('Test SDF Network ; September 2015')).toString('hex')).toBe(
      'cee0302d59844d32bdca915c8203dd44b33fbb7edc19051ea37abedf28ecd472',
    );
  });
});
