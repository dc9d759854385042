import fc from 'fast-check';
import { endOfLedger, eventId, parseEventId } from '../../../src/simnet/event-id';

const position = fc.record({
  ledger: fc.integer({ min: 1, max: 0x7fff_ffff }),
  transaction: fc.integer({ min: 0, max: 0xf_ffff }),
  operation: fc.integer({ min: 0, max: 0xfff }),
  event: fc.integer({ min: 0, max: 0xffff_ffff }),
});

describe('event ids', () => {
  it('read as real nodes write them', () => {
    expect(parseEventId('0016010972359577600-0000000001')).toEqual({
      ledger: 3_727_845,
      transaction: 5,
      operation: 0,
      event: 1,
    });
    expect(endOfLedger(1200)).toBe('0000005158255722495-4294967295');
    expect(parseEventId('5158255722495-1')).toBeUndefined();
  });

  it('go there and back, and sort as text in chain order', () => {
    fc.assert(
      fc.property(position, position, (a, b) => {
        expect(parseEventId(eventId(a))).toEqual(a);
        const order = [
          a.ledger - b.ledger,
          a.transaction - b.transaction,
          a.operation - b.operation,
          a.event - b.event,
        ];
        const first = Math.sign(order.find((difference) => difference !== 0) ?? 0);
        const text = eventId(a) < eventId(b) ? -1 : eventId(a) > eventId(b) ? 1 : 0;
        expect(text).toBe(first);
      }),
    );
  });
});
