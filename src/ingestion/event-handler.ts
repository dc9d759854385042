import type { Failure } from '../platform/errors';
import type { Logger } from '../platform/logger';
import type { ContractValue } from '../stellar/contract-value';
import type { RawEvent } from './event-source';

/** A stored event, decoded. */
export interface ContractEvent {
  /** The RPC's event id. In string order = chain order. */
  id: string;
  /** `ledger:transaction:index`. The key to be idempotent by: the same event from any server, at any time, has this one. */
  identity: string;
  contractId: string;
  ledger: number;
  ledgerClosedAt: Date;
  /** 64 hex digits. */
  transactionHash: string;
  topics: readonly ContractValue[];
  value: ContractValue;
  raw: RawEvent;
}

export interface EventHandlerContext {
  /** Aborts on shutdown and when the delivery's lease is lost. Stop then; the event will be delivered again. */
  signal: AbortSignal;
  /** Carries the handler's name, and the event's id when there is just one. */
  logger: Logger;
  /** This try's number, from 1. A batch is always a first try: what has failed before is retried alone. */
  attempt: number;
  maxAttempts: number;
  /** See {@link ContractFollowing}. */
  following: ContractFollowing;
}

/** What is read can grow and shrink: for contracts that an event tells of. Kept in the queue file. */
export interface ContractFollowing {
  /**
   * Reads a contract from `startLedger` on as well, which should be where it was made. One that is followed stays as it is.
   * @throws RangeError for what is no contract id (C…) or no ledger
   */
  follow(contractId: string, startLedger: number): void;
  /** Reads it no longer. What is stored of it is still delivered. A contract that is configured stays. */
  unfollow(contractId: string): void;
}

/** How the delivery of one event ended. */
export type EventOutcome =
  | { kind: 'handled' }
  | { kind: 'failed'; failure: Failure }
  /** Too early (what it completes isn't there yet): kept, delivered again after `delayMs`, at no cost of an attempt. */
  | { kind: 'postponed'; delayMs: number; reason: string };

/** By event id. An event that isn't named was handled. */
export type EventOutcomes = ReadonlyMap<string, EventOutcome>;

export type EventPriority = 'high' | 'normal' | 'low';

export interface EventRetryPolicy {
  /** Tries in all. A death of the process counts as one, but it takes five to give an event up for that alone. */
  maxAttempts: number;
  /** Back-off before try n+1: a random time up to min(maxDelayMs, baseDelayMs × 2^(n−1)). */
  baseDelayMs: number;
  maxDelayMs: number;
}

export interface EventHandlerDefinition {
  /** Names its deliveries in the queue file for good. Renaming a handler orphans what was waiting for the old name. */
  name: string;
  /**
   * Which events: `certificate_minted` (first topic), `tikka/draw_triggered` (leading topics), `EVENT/LOG`, `*` (any one
   * segment; alone: every event). Compared by decoded value, without regard to case and underscores.
   */
  topics: readonly string[];
  /** Only events of these contracts. Default: of every contract that is followed. */
  contracts?: readonly string[];
  /** One at a time per contract, in chain order; a retry holds up that contract's line, a dead letter lets it go on. */
  ordered?: boolean;
  /** Most events in one call. Default 1. */
  batch?: number;
  /** Calls at one time in one process. */
  concurrency: number;
  /** Who goes first when the process is short of slots; also picks the retry policy. */
  priority: EventPriority;
  /** Overrides the policy of its priority. */
  retry?: Partial<EventRetryPolicy>;
  /**
   * Must be idempotent by `identity`: delivery is at least once. Resolving without outcomes means all were handled; a
   * rejection is described by `describeFailure` and tried again, or dead-lettered when it can't succeed.
   */
  handle(events: readonly ContractEvent[], context: EventHandlerContext): Promise<EventOutcomes | undefined>;
}

export interface EventHandler extends EventHandlerDefinition {
  readonly ordered: boolean;
  readonly batch: number;
}

const HANDLER_NAME = /^[a-z0-9][a-z0-9._-]{0,63}$/;

/** Checks a definition and fills in its defaults. @throws RangeError for one that could never work. */
export function defineEventHandler(definition: EventHandlerDefinition): EventHandler {
  const { name, topics, concurrency, batch = 1, ordered = false } = definition;
  if (!HANDLER_NAME.test(name))
    throw new RangeError(`event handler name ${JSON.stringify(name)} is not kebab-case`);
  if (topics.length === 0) throw new RangeError(`event handler ${name} names no topics`);
  for (const [what, value] of Object.entries({ concurrency, batch })) {
    if (!Number.isSafeInteger(value) || value < 1)
      throw new RangeError(`event handler ${name}: ${what} must be 1 or more`);
  }
  const handler = { ...definition, batch, ordered };
  return { ...handler, handle: (events, context) => definition.handle(events, context) };
}
