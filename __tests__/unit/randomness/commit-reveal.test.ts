import { createHash } from 'node:crypto';
import { commitmentOf, newCommitmentOpening, opens } from '../../../src/randomness/commit-reveal';
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

  it('opens with its own secret and nonce only', () => {
    const fresh = newCommitmentOpening();
    expect(fresh.secret).toHaveLength(32);
    expect(fresh.nonce).toHaveLength(16);
    expect(opens(commitmentOf(fresh), fresh)).toBe(true);
    expect(opens(commitmentOf(fresh), newCommitmentOpening())).toBe(false);
    expect(opens(Buffer.alloc(5), fresh)).toBe(false);
  });

  it('refuses an opening of the wrong size', () => {
    expect(() => commitmentOf({ ...opening, nonce: Buffer.alloc(32) })).toThrow(RangeError);
  });
});
