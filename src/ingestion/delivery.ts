import type { Branded } from '../platform/ids';

/** `host:pid:boot#n`, made for each claim. Its holder part lets a restarted process see that the claimant is gone. */
export type DeliveryToken = Branded<'DeliveryToken'>;

/** The right to hand one event to one handler, until the lease ends. */
export interface Delivery {
  seq: number;
  handler: string;
  token: DeliveryToken;
  /** This try's number, from 1. */
  attempt: number;
  maxAttempts: number;
}

/** Deliveries that go to their handler in one call. */
export type DeliveryBatch = readonly Delivery[];

export interface ClaimRequest {
  handler: string;
  ordered: boolean;
  /** Most deliveries in a batch. */
  batch: number;
  /** Most batches. */
  slots: number;
}

/** Times are this host's epoch milliseconds; the file is never shared beyond one host. */
export type DeliveryResult =
  | { kind: 'done' }
  | { kind: 'retry'; dueAt: number; code: string; message: string }
  | { kind: 'postponed'; dueAt: number; reason: string }
  | { kind: 'dead'; code: string; message: string }
  /** Never handed over: given back with its attempt. */
  | { kind: 'unused' };

export interface Settlement {
  delivery: Pick<Delivery, 'seq' | 'handler' | 'token' | 'attempt'>;
  result: DeliveryResult;
}

/** To whom one event goes, or why it goes to nobody. */
export type Route =
  | {
      kind: 'deliver';
      seq: number;
      contract: number;
      to: readonly { handler: string; ordered: boolean; maxAttempts: number }[];
    }
  | { kind: 'quarantine'; seq: number; reason: string };

export interface HandlerBacklog {
  handler: string;
  ready: number;
  waiting: number;
  leased: number;
  dead: number;
}
