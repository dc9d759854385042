import { createHash } from 'node:crypto';
import { Keypair } from '@stellar/stellar-sdk';
import fc from 'fast-check';
import {
  isAmbiguous,
  randomnessMessage,
  type MessageVersion,
  type RandomnessSubject,
} from '../../../src/randomness/seeds/randomness-message';
import {
  computePrng,
  computeVrf,
  derivePrngSecret,
  seedAsU64,
  verifyPrng,
  verifyVrf,
} from '../../../src/randomness/seeds/seed-proof';
import vectors from '../../fixtures/randomness/vectors.json';

const keypair = Keypair.fromRawEd25519Seed(Buffer.from(vectors.secretKeySeed, 'hex'));
const sign = (bytes: Uint8Array): Promise<Uint8Array> => Promise.resolve(keypair.sign(Buffer.from(bytes)));
const prngSecret = Buffer.from(vectors.prngSecret, 'hex');

const subjectOf = (requestId: string, raffleId: number | null): RandomnessSubject => ({
  networkPassphrase: vectors.networkPassphrase,
  contractId: vectors.contractId,
  requestId,
  raffleId,
});

const flipped = (bytes: Uint8Array, bit: number): Buffer => {
  const copy = Buffer.from(bytes);
  const index = bit % (copy.length * 8);
  copy[index >> 3] = (copy[index >> 3] ?? 0) ^ (1 << (index & 7));
  return copy;
};

describe('randomness', () => {
  it('derives the PRNG secret as the vectors do', async () => {
    expect((await derivePrngSecret(sign)).toString('hex')).toBe(vectors.prngSecret);
    expect(keypair.rawPublicKey().toString('hex')).toBe(vectors.publicKey);
  });

  test.each(vectors.randomness)(
    'vector: request $requestId, raffle $raffleId, version $version',
    async (vector) => {
      const message = randomnessMessage(
        subjectOf(vector.requestId, vector.raffleId),
        vector.version as MessageVersion,
      );
      expect(message.toString('hex')).toBe(vector.message);
      const vrf = await computeVrf(message, sign);
      expect({ seed: vrf.seed.toString('hex'), proof: vrf.proof.toString('hex') }).toEqual(vector.vrf);
      const prng = computePrng(message, prngSecret);
      expect({ seed: prng.seed.toString('hex'), proof: prng.proof.toString('hex') }).toEqual(vector.prng);
    },
  );

  const subjects = fc
    .record({
      requestId: fc.string({ minLength: 1, maxLength: 40, unit: 'grapheme' }),
      raffleId: fc.option(fc.nat({ max: 0xffff_ffff }), { nil: null }),
      version: fc.constantFrom<MessageVersion>(1, 2),
    })
    .filter((subject) => !isAmbiguous(subject, subject.version));

  it('is deterministic, verifies, and fails on any flipped bit (VRF)', async () => {
    await fc.assert(
      fc.asyncProperty(subjects, fc.nat({ max: 65_535 }), async ({ requestId, raffleId, version }, bit) => {
        const message = randomnessMessage(subjectOf(requestId, raffleId), version);
        const made = await computeVrf(message, sign);
        expect(await computeVrf(message, sign)).toEqual(made);
        const key = keypair.publicKey();
        expect(verifyVrf(message, made, key)).toBe(true);
        expect(verifyVrf(flipped(message, bit), made, key)).toBe(false);
        expect(verifyVrf(message, { ...made, seed: flipped(made.seed, bit) }, key)).toBe(false);
        expect(verifyVrf(message, { ...made, proof: flipped(made.proof, bit) }, key)).toBe(false);
        // A seed recomputed over a forged proof doesn't help: the signature is checked as well.
        const forged = flipped(made.proof, bit);
        const seed = createHash('sha256').update(forged).digest();
        expect(verifyVrf(message, { seed, proof: forged }, key)).toBe(false);
        expect(verifyVrf(message, made, Keypair.random().publicKey())).toBe(false);
      }),
      { numRuns: 40 },
    );
  });

  it('is deterministic, verifies, and fails on any flipped bit (PRNG)', () => {
    fc.assert(
      fc.property(subjects, fc.nat({ max: 65_535 }), ({ requestId, raffleId, version }, bit) => {
        const message = randomnessMessage(subjectOf(requestId, raffleId), version);
        const made = computePrng(message, prngSecret);
        expect(computePrng(message, prngSecret)).toEqual(made);
        expect(verifyPrng(message, made, prngSecret)).toBe(true);
        expect(verifyPrng(flipped(message, bit), made, prngSecret)).toBe(false);
        expect(verifyPrng(message, { ...made, seed: flipped(made.seed, bit) }, prngSecret)).toBe(false);
        expect(verifyPrng(message, { ...made, proof: flipped(made.proof, bit) }, prngSecret)).toBe(false);
        // Without the secret the seed can't be had from what is public.
        expect(verifyPrng(message, made, flipped(prngSecret, bit))).toBe(false);
      }),
    );
  });

  it('binds version 2 to network and contract, and version 1 to neither', () => {
    const subject = subjectOf('7', 1);
    const elsewhere = { ...subject, networkPassphrase: 'Public Global Stellar Network ; September 2015' };
    const other = { ...subject, contractId: 'C'.padEnd(56, 'A') };
    expect(randomnessMessage(elsewhere, 1)).toEqual(randomnessMessage(subject, 1));
    expect(randomnessMessage(elsewhere, 2)).not.toEqual(randomnessMessage(subject, 2));
    expect(randomnessMessage(other, 2)).not.toEqual(randomnessMessage(subject, 2));
  });

  it('makes no message of version 1 that could be the hash of a transaction', () => {
    expect(() => randomnessMessage(subjectOf('r'.repeat(28), 1), 1)).toThrow('transaction');
    expect(randomnessMessage(subjectOf('r'.repeat(28), 1), 2)).toHaveLength(
      randomnessMessage(subjectOf('r'.repeat(27), 1), 2).length + 1,
    );
  });

  it('never lets a request id of version 1 pass for a tagged message', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, unit: 'binary' }), (requestId) => {
        fc.pre(Buffer.byteLength(requestId) !== 28);
        expect(randomnessMessage(subjectOf(requestId, 1), 1)[0]).not.toBe(0xff);
      }),
    );
    expect(() => randomnessMessage(subjectOf('', 1), 1)).toThrow(RangeError);
    expect(() => randomnessMessage(subjectOf('1', 2 ** 32), 1)).toThrow(RangeError);
  });

  it('takes the first eight bytes, big-endian, for contracts with a u64 seed', () => {
    expect(seedAsU64(Buffer.from(`0102030405060708${'ff'.repeat(24)}`, 'hex'))).toBe(0x0102030405060708n);
  });
});
