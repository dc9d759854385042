import type { AccountRecord } from './state';
import { checkTransaction, minimumBalance } from './transaction-checks';
import type { TransactionFrame } from './transaction-frame';
import { feeRate } from './transaction-frame';
import type { Rejection } from './transaction-result';

/** stellar-core's constants: a transaction waits this many ledgers, and is then refused for that many. */
export const pendingDepthLedgers = 4;
export const banDepthLedgers = 10;
/** A queued transaction gives way only to a fee bump that bids this many times as much per operation. */
export const replacementFactor = 10n;

export type AddResult =
  | { kind: 'pending' }
  | { kind: 'duplicate' }
  | { kind: 'tryAgainLater'; reason: 'banned' | 'accountBusy' }
  | { kind: 'error'; rejection: Rejection };

interface Queued {
  frame: TransactionFrame;
  ageLedgers: number;
}

export interface QueueContext {
  account(publicKey: string): AccountRecord | undefined;
  closeTimeSeconds: number;
}

/** The node's waiting room, by the rules of stellar-core: one transaction per source account. */
export class TransactionQueue {
  private readonly bySource = new Map<string, Queued>();
  /** Hashes refused, one set per ledger, newest first. */
  private banned: Set<string>[] = Array.from({ length: banDepthLedgers }, () => new Set());

  get size(): number {
    return this.bySource.size;
  }

  add(frame: TransactionFrame, context: QueueContext): AddResult {
    if (this.isBanned(frame.hash)) return { kind: 'tryAgainLater', reason: 'banned' };
    const queued = this.bySource.get(frame.source);
    if (queued) {
      const refusal = this.againstQueued(frame, queued.frame);
      if (refusal) return refusal;
    }
    const rejection = checkTransaction(frame, context) ?? this.checkQueuedFees(frame, queued?.frame, context);
    if (rejection) return { kind: 'error', rejection };
    this.bySource.set(frame.source, { frame, ageLedgers: 0 });
    return { kind: 'pending' };
  }

  /** The best paying transactions, at most `capacity`, none below the bar; they stay queued until `applied`. */
  candidates(capacity: number, minimumFeeRate: bigint): TransactionFrame[] {
    return [...this.bySource.values()]
      .map(({ frame }) => frame)
      .filter((frame) => feeRate(frame) >= minimumFeeRate)
      .sort((a, b) => Number(feeRate(b) - feeRate(a)))
      .slice(0, capacity);
  }

  /** Takes transactions out and bans their hashes: they are in a ledger, or can be in none. */
  remove(frames: readonly TransactionFrame[]): void {
    for (const frame of frames) {
      if (this.bySource.get(frame.source)?.frame.hash === frame.hash) this.bySource.delete(frame.source);
      this.banned[0]?.add(frame.hash);
    }
  }

  /** A ledger has closed: what has waited too long is dropped and banned. Returns what was dropped. */
  shift(): TransactionFrame[] {
    this.banned = [new Set(), ...this.banned.slice(0, banDepthLedgers - 1)];
    const dropped: TransactionFrame[] = [];
    for (const queued of this.bySource.values()) {
      queued.ageLedgers += 1;
      if (queued.ageLedgers >= pendingDepthLedgers) dropped.push(queued.frame);
    }
    this.remove(dropped);
    return dropped;
  }

  isBanned(hash: string): boolean {
    return this.banned.some((hashes) => hashes.has(hash));
  }

  private againstQueued(frame: TransactionFrame, queued: TransactionFrame): AddResult | undefined {
    if (frame.hash === queued.hash || frame.hash === queued.innerHash) return { kind: 'duplicate' };
    if (frame.sequence < queued.sequence) {
      return { kind: 'error', rejection: { code: 'txBadSeq', feeCharged: frame.fullFee } };
    }
    if (!frame.feeBump || frame.sequence !== queued.sequence)
      return { kind: 'tryAgainLater', reason: 'accountBusy' };

    const wanted = replacementFactor * queued.inclusionFee * frame.feeOperations;
    if (frame.inclusionFee * queued.feeOperations >= wanted) return undefined;
    const needed = (wanted + queued.feeOperations - 1n) / queued.feeOperations + frame.resourceFee;
    return { kind: 'error', rejection: { code: 'txInsufficientFee', feeCharged: needed } };
  }

  /** One payer may back many queued transactions, so all their bids must be covered. */
  private checkQueuedFees(
    frame: TransactionFrame,
    replaced: TransactionFrame | undefined,
    context: QueueContext,
  ): Rejection | undefined {
    let committed = 0n;
    for (const { frame: other } of this.bySource.values()) {
      if (other !== replaced && other.feeSource === frame.feeSource) committed += other.fullFee;
    }
    const available = (context.account(frame.feeSource)?.balance ?? 0n) - minimumBalance - committed;
    return available < frame.fullFee
      ? { code: 'txInsufficientBalance', feeCharged: frame.fullFee }
      : undefined;
  }
}
