import {
  endOfLedger,
  eventIdentity,
  isAhead,
  nextLedger,
  parsePosition,
} from '../../../src/ingestion/chain-position';

describe('positions', () => {
  it('are read as servers write them', () => {
    expect(parsePosition('0016010972359577600-0000000008')).toEqual({
      ledger: 3_727_845,
      transaction: 5,
      operation: 0,
      event: 8,
    });
  });

  it.each(['', 'now', '16010972359577600-8', '0016010972359577600-0000000008-1'])('%p is opaque', (text) => {
    expect(parsePosition(text)).toBeNull();
    expect(nextLedger(text)).toBeNull();
  });

  it('the end of a ledger is behind all of it and before the next', () => {
    expect(endOfLedger(3_727_845) > '0016010972359577600-0000000008').toBe(true);
    expect(endOfLedger(3_727_844) < '0016010972359577600-0000000008').toBe(true);
    expect(nextLedger(endOfLedger(100))).toBe(101);
    expect(nextLedger('0016010972359577600-0000000008')).toBe(3_727_845);
  });

  it('are ahead when they lie beyond; what can’t be read is taken for that', () => {
    expect(isAhead(endOfLedger(5), { cursor: endOfLedger(4) })).toBe(true);
    expect(isAhead(endOfLedger(4), { cursor: endOfLedger(4) })).toBe(false);
    expect(isAhead(endOfLedger(4), { startLedger: 5 })).toBe(true);
    expect(isAhead(endOfLedger(3), { startLedger: 5 })).toBe(false);
    expect(isAhead('opaque', { cursor: endOfLedger(4) })).toBe(true);
    expect(isAhead('opaque', { cursor: 'opaque' })).toBe(false);
  });
});

describe('event identity', () => {
  const event = { ledger: 3_727_845, txHash: 'a5c9' };
  it('is ledger, transaction and index', () => {
    expect(eventIdentity({ ...event, id: '0016010972359577600-0000000008' })).toBe('3727845:a5c9:8');
  });
  it('tells operations apart', () => {
    expect(eventIdentity({ ...event, id: '0016010972359577602-0000000008' })).toBe('3727845:a5c9:2.8');
  });
});
