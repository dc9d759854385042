/**
 * The form that RPC servers give event ids and cursors: a 19-digit TOID (ledger << 32 | transaction << 12 | operation),
 * a hyphen, and the event's index in ten digits. Zero-padded, so string order is chain order.
 */
const POSITION = /^(\d{19})-(\d{10})$/;
const LEDGER_SHIFT = 32n;
const TRANSACTION_SHIFT = 12n;
const TRANSACTION_MASK = 0xf_ffffn;
const OPERATION_MASK = 0xfffn;
/** What servers use for "after the last event of this ledger". */
const LAST_EVENT = '4294967295';

export interface ChainPosition {
  ledger: number;
  transaction: number;
  operation: number;
  event: number;
}

/** Null for a cursor of another form: it is then opaque, and only the server knows where it points. */
export function parsePosition(text: string): ChainPosition | null {
  const parts = POSITION.exec(text);
  if (parts === null) return null;
  const toid = BigInt(parts[1] as string);
  return {
    ledger: Number(toid >> LEDGER_SHIFT),
    transaction: Number((toid >> TRANSACTION_SHIFT) & TRANSACTION_MASK),
    operation: Number(toid & OPERATION_MASK),
    event: Number(parts[2]),
  };
}

/** The cursor behind every event of `ledger` and before any of the next. */
export function endOfLedger(ledger: number): string {
  const toid = (BigInt(ledger) << LEDGER_SHIFT) | (TRANSACTION_MASK << TRANSACTION_SHIFT) | OPERATION_MASK;
  return `${toid.toString().padStart(19, '0')}-${LAST_EVENT}`;
}

/** The first ledger that may still hold something behind `cursor`, or null where the cursor is opaque. */
export function nextLedger(cursor: string): number | null {
  const position = parsePosition(cursor);
  if (position === null) return null;
  return position.transaction === Number(TRANSACTION_MASK) ? position.ledger + 1 : position.ledger;
}

/** `ledger:transaction:index`. Contract calls have one operation; an index in another one carries its number. */
export function eventIdentity(event: { id: string; ledger: number; txHash: string }): string {
  const position = parsePosition(event.id);
  if (position === null) return `${event.ledger}:${event.txHash}:${event.id}`;
  const { operation, event: index } = position;
  return `${event.ledger}:${event.txHash}:${operation === 0 ? index : `${operation}.${index}`}`;
}

/**
 * Whether `cursor` lies beyond `position`. Of a cursor that can't be read it is assumed: reading on from there may repeat
 * events, never skip them, as long as everything behind it is handled.
 */
export function isAhead(cursor: string, position: { startLedger?: number; cursor?: string }): boolean {
  if (position.startLedger !== undefined) {
    const ledger = nextLedger(cursor);
    return ledger === null || ledger >= position.startLedger;
  }
  if (
    position.cursor === undefined ||
    parsePosition(cursor) === null ||
    parsePosition(position.cursor) === null
  ) {
    return cursor !== position.cursor;
  }
  return cursor > position.cursor;
}
