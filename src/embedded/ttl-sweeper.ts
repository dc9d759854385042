import { BracketEdge, RANK } from './bson/ranks';
import type { Collection } from './storage/collection';
import type { CollectionIndex, StoredRecord } from './storage/collection-index';
import type { Bound, IndexRange } from './storage/ordered-index';
import type { Store } from './storage/store';

/** Often, where mongod takes a minute: a test shouldn't have to wait for it. */
const SWEEP_INTERVAL_MS = 1_000;
/** At most so many at a time, so that commands don't wait for long. */
const MAX_REMOVALS = 20_000;

function expiredRange({ definition }: CollectionIndex, beforeMs: number): IndexRange {
  const first: Bound = { prefix: [BracketEdge.before(RANK.date)], after: false };
  const last: Bound = { prefix: [new Date(beforeMs)], after: true };
  if (definition.parts[0]?.direction !== -1) return { from: first, to: last };
  return { from: { ...last, after: false }, to: { ...first, after: true } };
}

function removeExpired(collection: Collection, index: CollectionIndex, nowMs: number, limit: number): number {
  const { expireAfterSeconds } = index.definition;
  if (expireAfterSeconds === undefined) return 0;
  const scan = index.tree.scan(expiredRange(index, nowMs - expireAfterSeconds * 1000), false);
  const expired: StoredRecord[] = [];
  while (expired.length < limit && scan.next()) expired.push(scan.entry);
  for (const record of expired) collection.remove(record);
  return expired.length;
}

/** Removes the documents whose time is up. @returns how many */
export function sweep(store: Store, nowMs: number): number {
  let removed = 0;
  for (const collection of store.allCollections()) {
    for (const index of collection.indexes)
      removed += removeExpired(collection, index, nowMs, MAX_REMOVALS - removed);
  }
  return removed;
}

/** @returns what stops it */
export function startTtlSweeper(store: Store): () => void {
  const timer = setInterval(() => sweep(store, Date.now()), SWEEP_INTERVAL_MS);
  timer.unref();
  return () => clearInterval(timer);
}
