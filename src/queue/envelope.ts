import type { Types } from 'mongoose';
import type { Branded, WorkerId } from '../platform/ids';

/** Made by the claimant before the claim is sent, so that a lost reply can be read back. Immutable while the lease lives. */
export type LeaseToken = Branded<'LeaseToken'>;

/**
 * - ready: may be claimed now
 * - waiting: not before `dueAt` (delayed, or in back-off)
 * - leased: held by `lease.token` until `lease.expiresAt`
 * - done, dead: terminal
 */
export type QueuePhase = 'ready' | 'waiting' | 'leased' | 'done' | 'dead';

export interface JobError {
  code: string;
  message: string;
  /** Which attempt met it, from 1. */
  attempt: number;
  /** Database clock. */
  at: Date;
  retryable: boolean;
  /** Who worked on it then. */
  workerId: WorkerId;
}

/** How the last lease that was given back ended. Lets the holder repeat a call whose reply was lost. */
export interface SettledLease {
  token: LeaseToken;
  as: 'completed' | 'released' | 'dead_lettered';
}

export interface StoredLease {
  token: LeaseToken;
  workerId: WorkerId;
  lane: number;
  /** Database clock. */
  expiresAt: Date;
}

/** The fields that a collection has to carry to be a queue. Every time is the database's clock. */
export interface QueueEnvelope {
  _id: Types.ObjectId;
  /** Idempotency key: one document for one key, for good. */
  key: string;
  phase: QueuePhase;
  /** Ascending claim order, milliseconds: dueAt − weight × priority. Lower goes first. */
  order: number;
  priority: number;
  dueAt: Date;
  /** Claims so far that were not handed back unused. */
  attempts: number;
  maxAttempts: number;
  /** Grows by one with every claim and never goes back: the fence for everything outside this document. */
  epoch: number;
  lease: StoredLease | null;
  settled: SettledLease | null;
  /** The last ten, oldest first. */
  errors: JobError[];
  enqueuedAt: Date;
  finishedAt: Date | null;
  /** True from the moment a job is dead, or is replayed, until its dead-letter record says so too. */
  deadLetterPending: boolean;
  /** How often it was replayed out of the dead letters. */
  replays: number;
}
