import type { Failure } from '../platform/errors';
import type { WorkerId } from '../platform/ids';
import type { LeaseToken, QueueEnvelope } from './envelope';

export interface Claimant {
  workerId: WorkerId;
  lane: number;
}

/** The right to work on one job until it is completed, handed back, or lost. */
export interface Lease {
  jobId: string;
  token: LeaseToken;
  epoch: number;
  /** This try's number, from 1. */
  attempt: number;
  maxAttempts: number;
  claimant: Claimant;
  /** {@link Clock.monotonicMs} of the claimant past which it must stop by itself; taken before the claim was sent. */
  deadlineMs: number;
}

/** `job` is a plain document (no hydration): the payload's fields beside the envelope's. */
export interface ClaimedJob<Payload> {
  lease: Lease;
  job: Payload & QueueEnvelope;
}

export type ClaimResult<Payload> = { kind: 'claimed'; claimed: ClaimedJob<Payload> } | { kind: 'empty' };

export interface EnqueueRequest<Payload> {
  /** Idempotency key. A second enqueue of it changes nothing. */
  key: string;
  payload: Payload;
  /** Higher is sooner; 0 is ordinary. Ages: see {@link QueueEnvelope.order}. */
  priority?: number;
  /** Not before so many milliseconds from now, by the database's clock. */
  delayMs?: number;
  maxAttempts?: number;
}

export type EnqueueResult<Payload> = { kind: 'enqueued' | 'already_there'; job: Payload & QueueEnvelope };

/** Losing a lease is an expected outcome, told as a value. Nothing was written. */
export type LeaseLost = { kind: 'lease_lost' };
export type Written<Kind extends string> = { kind: Kind } | LeaseLost;

export interface ReleaseOptions {
  /** Claimable again so many milliseconds from now, by the database's clock. */
  delayMs: number;
  /** Why the try ended; appended to `errors`. */
  failure?: Failure;
  /** True when the job was never really tried (no slot, shutdown before the first step): the attempt is given back. */
  refundAttempt?: boolean;
  /** True when a job that gets its attempt back goes behind those that are due before it is again; else it keeps its place. */
  yieldsPlace?: boolean;
}

/** What a patch may change: the payload's own fields. The envelope belongs to the queue. */
export type PayloadPatch<Payload> = Partial<Payload>;

/**
 * A queue of documents under expiring leases. Every call that takes a lease writes only where that lease still stands.
 * `complete`, `release` and `deadLetter` may be repeated after an error: what was applied already is answered as done.
 * All of them reject with the driver's error when the database can't be reached; none swallows one.
 */
export interface WorkerQueue<Payload> {
  enqueue(request: EnqueueRequest<Payload>): Promise<EnqueueResult<Payload>>;
  claim(claimant: Claimant): Promise<ClaimResult<Payload>>;
  /** Extends every one of `leases` (their deadlines too) in one write. Returns those that are lost. */
  renew(leases: readonly Lease[]): Promise<{ lost: Lease[] }>;
  /** Progress: stores `patch` on the job while the lease stands. */
  record(lease: Lease, patch: PayloadPatch<Payload>): Promise<Written<'recorded'>>;
  complete(lease: Lease, patch?: PayloadPatch<Payload>): Promise<Written<'completed'>>;
  /** A dead letter instead, where this was the last attempt and it is not refunded. */
  release(
    lease: Lease,
    options: ReleaseOptions,
    patch?: PayloadPatch<Payload>,
  ): Promise<Written<'released' | 'dead_lettered'>>;
  deadLetter(
    lease: Lease,
    failure: Failure,
    patch?: PayloadPatch<Payload>,
  ): Promise<Written<'dead_lettered'>>;
}
