import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';

export const auditEvents = [
  /** A seed is fixed; the row holds its hash, not the seed. */
  'committed',
  /** It is on chain: seed, proof and transaction. */
  'revealed',
  /** The job ended without delivery. */
  'abandoned',
  /** An operator is about to do something; a row of its own follows with what came of it. */
  'rescue_intent',
  'rescue_re_enqueue',
  'rescue_force_submit',
  'rescue_force_fail',
  'rescue_discard',
] as const;
export type AuditEvent = (typeof auditEvents)[number];

/** Only what JSON keeps as it is, so that a row reads back to the very bytes that were hashed. */
export type AuditData = Readonly<Record<string, string | number | boolean | null>>;

export interface AuditEntry {
  event: AuditEvent;
  /** Names the event for good: a second row of it is not appended. */
  eventKey: string;
  requestId: string;
  raffleId: number | null;
  data: AuditData;
}

export interface AuditRow extends AuditEntry {
  /** 1, 2, 3 … without a gap. */
  seq: number;
  /** ISO 8601, the appending process's clock. */
  at: string;
  /** Hash of the row before; of the first, of the word GENESIS. */
  previousHash: string;
  /** SHA-256, hex, over the canonical JSON (RFC 8785) of the row without this field. */
  hash: string;
}

export const GENESIS_HASH = createHash('sha256').update('GENESIS').digest('hex');

export function chainRow(
  entry: AuditEntry,
  previous: Pick<AuditRow, 'seq' | 'hash'> | null,
  at: string,
): AuditRow {
  const { event, eventKey, requestId, raffleId, data } = entry;
  const unsealed = {
    seq: (previous?.seq ?? 0) + 1,
    at,
    event,
    eventKey,
    requestId,
    raffleId,
    data,
    previousHash: previous?.hash ?? GENESIS_HASH,
  };
  return { ...unsealed, hash: rowHash(unsealed) };
}

export type ChainFault = {
  seq: number;
  problem: 'gap' | 'broken_link' | 'altered_row' | 'rewritten' | 'cut_off';
};

/** What is wrong with `row` as the successor of `previous`; null when it stands. */
export function faultOf(row: AuditRow, previous: Pick<AuditRow, 'seq' | 'hash'> | null): ChainFault | null {
  if (row.seq !== (previous?.seq ?? 0) + 1) return { seq: row.seq, problem: 'gap' };
  if (row.previousHash !== (previous?.hash ?? GENESIS_HASH)) return { seq: row.seq, problem: 'broken_link' };
  const { hash, ...unsealed } = row;
  return rowHash(unsealed) === hash ? null : { seq: row.seq, problem: 'altered_row' };
}

const rowHash = (unsealed: Omit<AuditRow, 'hash'>): string =>
  createHash('sha256')
    .update(canonicalize(unsealed) ?? '')
    .digest('hex');
