import type { Clock } from '../../platform/clock';
import { PermanentError } from '../../platform/errors';
import { originOf } from './json-rpc';

/**
 * - closed: in use
 * - open: benched until its cool-down is over
 * - half_open: cool-down over, being probed
 */
export type CircuitState = 'closed' | 'open' | 'half_open';

export interface EndpointOptions {
  url: string;
  failureThreshold: number;
  cooldownMs: number;
  clock: Clock;
}

/** For health pages: no path, no credentials. */
export interface EndpointHealth {
  endpoint: string;
  state: CircuitState;
  consecutiveFailures: number;
  /** Smoothed; null before the first answer. */
  latencyMs: number | null;
  latestLedger: number | null;
  /** It serves another network than ours and is never asked. */
  foreign: boolean;
}

/** Where the network's own clock stood by the answers of one node. */
interface ChainClock {
  closeTimeMs: number;
  readAtMs: number;
}

/** Answers overtake each other by moments; a close time that is earlier by more than this takes an earlier one back. */
const OUT_OF_ORDER_MS = 60_000;
const MAX_COOLDOWN_FACTOR = 8;
const LATENCY_WEIGHT = 0.2;

/** What we know of one node, from its answers alone. All times are of the process's monotonic clock. */
export class Endpoint {
  readonly url: string;
  readonly origin: string;
  /** The ledger that it told of last. */
  latestLedger: number | null = null;
  /** Whether its passphrase is ours; unknown before the first call. */
  network: 'unknown' | 'ours' | 'foreign' = 'unknown';
  /** As it told us; null before the first call. */
  passphrase: string | null = null;
  private state: CircuitState = 'closed';
  private failures = 0;
  private cooldownFactor = 1;
  private openUntilMs = 0;
  private pausedUntilMs = 0;
  private latencyMs: number | null = null;
  private chainClock: ChainClock | null = null;

  /** @throws PermanentError INVALID_RPC_URL, which doesn't quote it */
  constructor(private readonly options: EndpointOptions) {
    this.url = options.url;
    // No cause: the runtime's own error quotes what it was given, and that may hold a provider's key.
    if (!URL.canParse(options.url)) throw new PermanentError('INVALID_RPC_URL', 'an RPC endpoint is no URL');
    this.origin = originOf(options.url);
  }

  get isClosed(): boolean {
    return this.state === 'closed';
  }

  get isDueForProbe(): boolean {
    if (this.state !== 'open' || this.network === 'foreign') return false;
    return this.pauseMs === 0 && this.options.clock.monotonicMs() >= this.openUntilMs;
  }

  /** How long it still asked to be left alone. */
  get pauseMs(): number {
    return Math.max(0, this.pausedUntilMs - this.options.clock.monotonicMs());
  }

  get benchedUntilMs(): number {
    return this.openUntilMs;
  }

  /** The network's time now, epoch milliseconds, extrapolated from the last close time that this node told; null before any. */
  get chainTimeMs(): number | null {
    if (this.chainClock === null) return null;
    return this.chainClock.closeTimeMs + (this.options.clock.monotonicMs() - this.chainClock.readAtMs);
  }

  /** For how long, by our own clock, it has told of no other close time. */
  get standstillMs(): number {
    return this.chainClock === null ? 0 : this.options.clock.monotonicMs() - this.chainClock.readAtMs;
  }

  /** Takes in how far the node says it is. True when that is further than before. */
  learn(ledger: number, closeTimeMs: number | undefined): boolean {
    const isFurther = ledger > (this.latestLedger ?? 0);
    this.latestLedger = ledger;
    // A close time seen before is older now than when it was first seen: only another one sets the clock.
    const known = this.chainClock?.closeTimeMs ?? 0;
    if (closeTimeMs !== undefined && (closeTimeMs > known || closeTimeMs < known - OUT_OF_ORDER_MS)) {
      this.chainClock = { closeTimeMs, readAtMs: this.options.clock.monotonicMs() };
    }
    return isFurther;
  }

  beginProbe(): void {
    this.state = 'half_open';
  }

  succeeded(latencyMs: number): void {
    this.latencyMs =
      this.latencyMs === null ? latencyMs : this.latencyMs + LATENCY_WEIGHT * (latencyMs - this.latencyMs);
    this.failures = 0;
  }

  close(): void {
    this.state = 'closed';
    this.failures = 0;
    this.cooldownFactor = 1;
  }

  /** True when this fault is the one that benches it. */
  failed(retryAfterMs: number | undefined): boolean {
    const wasClosed = this.isClosed;
    this.failures += 1;
    if (retryAfterMs !== undefined) {
      this.pausedUntilMs = this.options.clock.monotonicMs() + retryAfterMs;
    }
    if (this.state !== 'half_open' && this.failures < this.options.failureThreshold) return false;
    this.open();
    return wasClosed;
  }

  /** Each bench in a row is twice as long as the one before. */
  open(): void {
    if (this.state === 'half_open')
      this.cooldownFactor = Math.min(MAX_COOLDOWN_FACTOR, this.cooldownFactor * 2);
    this.state = 'open';
    this.openUntilMs = this.options.clock.monotonicMs() + this.options.cooldownMs * this.cooldownFactor;
  }

  health(): EndpointHealth {
    return {
      endpoint: this.origin,
      state: this.state,
      consecutiveFailures: this.failures,
      latencyMs: this.latencyMs === null ? null : Math.round(this.latencyMs),
      latestLedger: this.latestLedger,
      foreign: this.network === 'foreign',
    };
  }
}
