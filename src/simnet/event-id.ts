/** Widths of the fields of a TOID: ledger 32 bits, transaction 20, operation 12. */
export const maxTransaction = 0xf_ffff;
export const maxOperation = 0xfff;
const maxEvent = 0xffff_ffff;

export interface EventPosition {
  ledger: number;
  transaction: number;
  operation: number;
  event: number;
}

/** The id of an event and of a cursor: 19 digits of TOID, 10 of event index, so that string order is chain order. */
export const eventId = ({ ledger, transaction, operation, event }: EventPosition): string => {
  const toid = (BigInt(ledger) << 32n) | (BigInt(transaction) << 12n) | BigInt(operation);
  return `${toid.toString().padStart(19, '0')}-${String(event).padStart(10, '0')}`;
};

/** The last position that a ledger can have: the cursor of a page that was scanned to its end. */
export const endOfLedger = (ledger: number): string =>
  eventId({ ledger, transaction: maxTransaction, operation: maxOperation, event: maxEvent });

export const parseEventId = (text: string): EventPosition | undefined => {
  const match = /^(\d{19})-(\d{10})$/.exec(text);
  if (!match?.[1] || !match[2]) return undefined;
  const toid = BigInt(match[1]);
  return {
    ledger: Number(toid >> 32n),
    transaction: Number((toid >> 12n) & BigInt(maxTransaction)),
    operation: Number(toid & BigInt(maxOperation)),
    event: Number(match[2]),
  };
};
