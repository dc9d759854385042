import { createHash } from 'node:crypto';
import {
  commitmentOf,
  newCommitmentOpening,
  revealedSeed,
} from '../../../src/randomness/seeds/commit-reveal';
import vectors from '../../fixtures/randomness/vectors.json';

const { secret, nonce, commitment } = vectors.commitReveal;
const opening = { secret: Buffer.from(secret, 'hex'), nonce: Buffer.from(nonce, 'hex') };

describe('commit and reveal', () => {
  it('hashes the raw bytes, as the contract does', () => {
    expect(commitmentOf(opening).toString('hex')).toBe(commitment);
    const ofText = createHash('sha256')
      .update(secret + nonce)
      .digest('hex');
    expect(commitmentOf(opening).toString('hex')).not.toBe(ofText);
  });

  it('makes an opening of its own for each raffle, and a seed of its own for each number', () => {
    const fresh = newCommitmentOpening();
    expect(fresh.secret).toHaveLength(32);
    expect(fresh.nonce).toHaveLength(16);
    expect(commitmentOf(newCommitmentOpening())).not.toEqual(commitmentOf(fresh));
    const number = Buffer.from([0, 0, 1, 200]);
    const seed = createHash('sha256')
      .update(Buffer.concat([fresh.secret, fresh.nonce, number]))
      .digest();
    expect(revealedSeed(fresh, 456)).toEqual(seed);
    expect(revealedSeed(fresh, 457)).not.toEqual(seed);
  });

  it('refuses an opening of the wrong size', () => {
    expect(() => commitmentOf({ ...opening, nonce: Buffer.alloc(32) })).toThrow(RangeError);
  });
});
