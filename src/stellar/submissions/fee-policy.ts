import { systemClock, type Clock } from '../../platform/clock';
import { SorolaneError } from '../../platform/errors';
import { MIN_INCLUSION_FEE_STROOPS } from '../chain/transaction-codec';
import type { SorobanRpc } from '../rpc/soroban-rpc';
import type { FeeClass } from '../submission';

/** All fees in stroops per operation, beside the resource fee. */
export interface FeeClassPolicy {
  /** Of the fees that late Soroban transactions paid: `p50`, `p90`, `p99`, … */
  percentile: string;
  cap: bigint;
}

export interface FeePolicyOptions {
  rpc: SorobanRpc;
  classes: Record<FeeClass, FeeClassPolicy>;
  /** Bid over the percentile: 1.2 is a fifth more. */
  margin: number;
  /** The bid when the network gives no figures. */
  fallback: bigint;
  clock?: Clock;
}

/** Fees move from ledger to ledger, not from call to call. */
const CACHE_MS = 5_000;

export class FeePolicy {
  private readonly clock: Clock;
  private cached: { stats: Record<string, bigint> | null; readAtMs: number } | null = null;

  constructor(private readonly options: FeePolicyOptions) {
    this.clock = options.clock ?? systemClock;
  }

  /** Never below what core demands, never above the class's cap. */
  async bid(feeClass: FeeClass, signal: AbortSignal): Promise<bigint> {
    const { percentile, cap } = this.options.classes[feeClass];
    const paid = (await this.stats(signal))?.[percentile];
    const wanted = paid === undefined ? this.options.fallback : scale(paid, this.options.margin);
    return min(cap, max(MIN_INCLUSION_FEE_STROOPS, wanted));
  }

  cap(feeClass: FeeClass): bigint {
    return this.options.classes[feeClass].cap;
  }

  /** That there was no answer is kept as long as one: it is asked for at every look of every lane. */
  private async stats(signal: AbortSignal): Promise<Record<string, bigint> | null> {
    const readAtMs = this.clock.monotonicMs();
    if (this.cached !== null && readAtMs - this.cached.readAtMs < CACHE_MS) return this.cached.stats;
    // Whoever comes while one asks is content with what was known before.
    if (this.cached !== null) this.cached = { ...this.cached, readAtMs };
    this.cached = { stats: await this.ask(signal), readAtMs };
    return this.cached.stats;
  }

  private async ask(signal: AbortSignal): Promise<Record<string, bigint> | null> {
    try {
      return await this.options.rpc.feeStats({ signal });
    } catch (error) {
      signal.throwIfAborted();
      // A fee is a guess anyway: no figures are no reason not to submit.
      if (error instanceof SorolaneError) return null;
      throw error;
    }
  }
}

const PERCENT = 100n;
const scale = (value: bigint, factor: number): bigint =>
  (value * BigInt(Math.ceil(factor * 100)) + PERCENT - 1n) / PERCENT;
const max = (a: bigint, b: bigint): bigint => (a > b ? a : b);
const min = (a: bigint, b: bigint): bigint => (a < b ? a : b);
