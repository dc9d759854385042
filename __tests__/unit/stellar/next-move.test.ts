import { nextMove, type Move, type Situation } from '../../../src/stellar/submissions/next-move';

const accepted = { kind: 'accepted' } as const;
const base: Situation = {
  lastReply: accepted,
  latestLedger: 100,
  acceptedAtLedger: 100,
  currentBid: 1_000n,
  recommendedBid: 1_000n,
  cap: 1_000_000n,
  bumpAfterLedgers: 5,
  isPaidBySource: true,
};

// The rules are stellar-core's: 4 ledgers in the queue, replacement by ten times the bid, any fee once dropped.
describe('what to do for a transaction that is in no ledger yet', () => {
  it.each<[string, Partial<Situation>, Move]>([
    ['just accepted', {}, { kind: 'wait' }],
    ['still queued', { latestLedger: 104 }, { kind: 'wait' }],
    ['never answered', { lastReply: { kind: 'none' }, acceptedAtLedger: null }, { kind: 'resend' }],
    ['accepted once, last send unanswered', { lastReply: { kind: 'none' } }, { kind: 'resend' }],
    ['told to try again', { lastReply: { kind: 'try_again' } }, { kind: 'resend' }],
    ['a bump that was stored but not accepted yet', { acceptedAtLedger: null }, { kind: 'resend' }],
    ['dropped: twice the bid will do', { latestLedger: 105 }, { kind: 'bump', bid: 2_000n }],
    [
      'dropped, fees have risen',
      { latestLedger: 105, recommendedBid: 7_000n },
      { kind: 'bump', bid: 7_000n },
    ],
    ['dropped, the cap is near', { latestLedger: 105, cap: 1_500n }, { kind: 'bump', bid: 1_500n }],
    ['dropped, at the cap', { latestLedger: 105, cap: 1_000n }, { kind: 'resend' }],
    ['queued and impatient', { latestLedger: 102, bumpAfterLedgers: 2 }, { kind: 'bump', bid: 10_000n }],
    [
      'queued and impatient, ten times is over the cap',
      { latestLedger: 102, bumpAfterLedgers: 2, cap: 9_999n },
      { kind: 'wait' },
    ],
    ['patient beyond the queue', { latestLedger: 106, bumpAfterLedgers: 12 }, { kind: 'resend' }],
    [
      'the source account has no funds: the oracle account pays',
      { lastReply: { kind: 'no_funds' } },
      { kind: 'bump', bid: 1_000n },
    ],
    [
      'the source account has no funds, and fees are over the cap',
      { lastReply: { kind: 'no_funds' }, recommendedBid: 9_000n, cap: 2_000n },
      { kind: 'bump', bid: 2_000n },
    ],
    [
      'the oracle account itself has no funds',
      { lastReply: { kind: 'no_funds' }, isPaidBySource: false },
      { kind: 'resend' },
    ],
    [
      'refused for its fee',
      { lastReply: { kind: 'low_fee', neededBid: 5_000n }, acceptedAtLedger: null },
      { kind: 'bump', bid: 5_000n },
    ],
    [
      'refused for its fee, which is over the cap now',
      { lastReply: { kind: 'low_fee', neededBid: 2_000_000n } },
      { kind: 'resend' },
    ],
    [
      'refused for a fee that it bids already',
      { lastReply: { kind: 'low_fee', neededBid: 900n } },
      { kind: 'resend' },
    ],
  ])('%s', (_name, situation, move) => {
    expect(nextMove({ ...base, ...situation })).toEqual(move);
  });
});
