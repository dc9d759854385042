import { z } from 'zod';
import { sleep, systemClock, type Clock } from '../../platform/clock';
import { PermanentError, TransientError } from '../../platform/errors';
import { silentLogger, type Logger } from '../../platform/logger';
import { noMetrics, type Metrics } from '../../platform/metrics';
import { Endpoint, type EndpointHealth } from './endpoint';
import { callJsonRpc } from './json-rpc';
import { rpcErrorOf } from './rpc-errors';

export interface RpcPoolOptions {
  /** In order of preference. */
  urls: readonly string[];
  networkPassphrase: string;
  /** Deadline of each call to each endpoint. */
  timeoutMs: number;
  /** Transport faults in a row that bench an endpoint. */
  failureThreshold: number;
  cooldownMs: number;
  /** A benched endpoint comes back only when it is no further behind than this. */
  maxLagLedgers: number;
  clock?: Clock;
  logger?: Logger;
  metrics?: Metrics;
}

export interface CallOptions<T> {
  schema: z.ZodType<T>;
  signal: AbortSignal;
  /** An answer from before this ledger is not good enough; the next endpoint is asked. */
  minLedger?: number;
  /** Prefers the endpoint that last answered for this key (an account). */
  stickyKey?: string;
  /** Asks this endpoint and no other. */
  only?: Endpoint;
  /** One endpoint, one try: for calls whose refusal means something else once an earlier try may have gone through. */
  once?: boolean;
}

export interface Answer<T> {
  value: T;
  endpoint: Endpoint;
}

/** Where the network's own clock stood, by the node that is furthest ahead. */
interface ChainClock {
  closeTimeMs: number;
  readAtMs: number;
}

const MAX_STICKY_KEYS = 1000;
const MAX_ROUNDS = 5;
const ROUND_PAUSE_MS = 100;
/** A longer wait is the caller's to take: it may have better things to do. */
const MAX_ROUND_PAUSE_MS = 3_000;

const progressSchema = z.object({
  latestLedger: z.number().optional(),
  sequence: z.number().optional(),
  latestLedgerCloseTime: z.coerce.number().optional(),
  closeTime: z.coerce.number().optional(),
});
const networkSchema = z.object({ passphrase: z.string() });
const healthSchema = z.object({ status: z.string(), latestLedger: z.number() });

/**
 * Several nodes as one. A circuit per endpoint; only faults of the way there (timeouts, refused connections, 429, 5xx,
 * answers that are no JSON-RPC) count against it, never what a node says about a request. The last endpoint is never
 * benched.
 */
export class RpcPool {
  private readonly endpoints: readonly Endpoint[];
  private readonly clock: Clock;
  private readonly logger: Logger;
  private readonly metrics: Metrics;
  private readonly sticky = new Map<string, Endpoint>();
  private readonly closing = new AbortController();
  private chainClock: ChainClock | null = null;

  constructor(private readonly options: RpcPoolOptions) {
    if (options.urls.length === 0)
      throw new PermanentError('NO_RPC_ENDPOINT', 'no RPC endpoint is configured');
    this.clock = options.clock ?? systemClock;
    this.logger = options.logger ?? silentLogger();
    this.metrics = options.metrics ?? noMetrics;
    this.endpoints = options.urls.map((url) => new Endpoint({ ...options, url, clock: this.clock }));
  }

  /**
   * Asks the endpoints in turn, some rounds of them.
   * @throws RpcRefusedError at once; RpcNodeError or TransientError RPC_… when no endpoint gave a usable answer;
   *   the signal's reason when it aborts.
   */
  async call<T>(
    method: string,
    params: Record<string, unknown> | undefined,
    options: CallOptions<T>,
  ): Promise<Answer<T>> {
    for (let round = 1; ; round += 1) {
      let failure: TransientError | undefined;
      const candidates = this.candidates(options);
      for (const endpoint of options.once ? candidates.slice(0, 1) : candidates) {
        try {
          await this.admit(endpoint, options.signal);
          const value = await this.ask(endpoint, method, params, options);
          if (options.stickyKey !== undefined) this.stick(options.stickyKey, endpoint);
          return { value, endpoint };
        } catch (error) {
          if (!(error instanceof TransientError)) throw error;
          failure = error;
        }
      }
      failure = this.allAsleep(options.only) ?? failure ?? noneServes();
      const pauseMs = failure.retryAfterMs ?? ROUND_PAUSE_MS * 2 ** (round - 1) * (0.5 + Math.random());
      if (options.once || round === MAX_ROUNDS || pauseMs > MAX_ROUND_PAUSE_MS) throw failure;
      await sleep(pauseMs, options.signal);
      options.signal.throwIfAborted();
    }
  }

  /** Those that serve our network, as far as known, for questions that one node's word doesn't settle. */
  witnesses(): readonly Endpoint[] {
    return this.endpoints.filter((endpoint) => endpoint.network !== 'foreign');
  }

  health(): EndpointHealth[] {
    return this.endpoints.map((endpoint) => endpoint.health());
  }

  /** The network's time now, epoch milliseconds, extrapolated from the last close time seen; null before any. */
  chainTimeMs(): number | null {
    if (this.chainClock === null) return null;
    return this.chainClock.closeTimeMs + (this.clock.monotonicMs() - this.chainClock.readAtMs);
  }

  /** Stops the probes. */
  close(): void {
    this.closing.abort();
  }

  /** The failure of there being no one to ask until the first endpoint may be asked again. */
  private allAsleep(only: Endpoint | undefined): TransientError | undefined {
    const asked = only ? [only] : this.witnesses();
    const retryAfterMs = Math.ceil(Math.min(...asked.map((endpoint) => endpoint.pauseMs)));
    if (asked.length === 0 || retryAfterMs === 0) return undefined;
    return new TransientError('RPC_RATE_LIMITED', 'every RPC endpoint asks to slow down', { retryAfterMs });
  }

  private candidates({
    stickyKey,
    minLedger = 0,
    only,
  }: Pick<CallOptions<unknown>, 'stickyKey' | 'minLedger' | 'only'>): Endpoint[] {
    for (const endpoint of this.endpoints) if (endpoint.isDueForProbe) void this.probe(endpoint);
    const awake = (only ? [only] : this.witnesses()).filter((endpoint) => endpoint.pauseMs === 0);
    if (only) return awake;
    const closed = awake.filter((endpoint) => endpoint.isClosed);
    // Never without any: the one whose bench ends first is asked all the same.
    if (closed.length === 0) return awake.toSorted((a, b) => a.benchedUntilMs - b.benchedUntilMs).slice(0, 1);
    const favourite = stickyKey === undefined ? undefined : this.sticky.get(stickyKey);
    const rank = (endpoint: Endpoint): number =>
      Number((endpoint.latestLedger ?? 0) < minLedger) * 2 +
      Number(favourite !== undefined && endpoint !== favourite);
    return closed.toSorted((a, b) => rank(a) - rank(b));
  }

  /** A node of another network would answer every look-up with "never heard of it", which here means "send again". */
  private async admit(endpoint: Endpoint, signal: AbortSignal): Promise<void> {
    if (endpoint.network === 'unknown') {
      const { passphrase } = await this.ask(endpoint, 'getNetwork', undefined, {
        schema: networkSchema,
        signal,
      });
      endpoint.network = passphrase === this.options.networkPassphrase ? 'ours' : 'foreign';
    }
    if (endpoint.network === 'foreign') {
      this.logger.error(
        { endpoint: endpoint.origin },
        'an RPC endpoint serves another network and is not used',
      );
      throw new TransientError('RPC_FOREIGN_NETWORK', `${endpoint.origin} serves another network`);
    }
  }

  private async ask<T>(
    endpoint: Endpoint,
    method: string,
    params: Record<string, unknown> | undefined,
    { schema, signal, minLedger = 0 }: CallOptions<T>,
  ): Promise<T> {
    const startedMs = this.clock.monotonicMs();
    const labels = { endpoint: endpoint.origin, method };
    let result: unknown;
    try {
      const reply = await callJsonRpc({
        url: endpoint.url,
        method,
        ...(params && { params }),
        timeoutMs: this.options.timeoutMs,
        signal,
      });
      endpoint.succeeded(this.clock.monotonicMs() - startedMs);
      this.metrics.observe('stellar_rpc_latency_ms', this.clock.monotonicMs() - startedMs, labels);
      if (reply.kind === 'error') {
        const facts = { endpoint: endpoint.origin, method, rpcCode: reply.code, rpcMessage: reply.message };
        throw rpcErrorOf(facts, endpoint);
      }
      result = reply.result;
    } catch (error) {
      this.settleFailure(endpoint, error, labels);
      throw error;
    }
    const parsed = schema.safeParse(result);
    if (!parsed.success) {
      throw new TransientError(
        'RPC_INVALID_RESPONSE',
        `${endpoint.origin} answered ${method} in another shape`,
        {
          cause: parsed.error,
          details: labels,
        },
      );
    }
    this.metrics.count('stellar_rpc_calls_total', { ...labels, outcome: 'ok' });
    if (this.learn(endpoint, result) < minLedger) {
      throw new TransientError('RPC_LAGGING', `${endpoint.origin} is behind ledger ${minLedger}`, {
        details: labels,
      });
    }
    return parsed.data;
  }

  private settleFailure(endpoint: Endpoint, error: unknown, labels: Record<string, string>): void {
    if (!(error instanceof TransientError || error instanceof PermanentError)) return;
    this.metrics.count('stellar_rpc_calls_total', { ...labels, outcome: error.code });
    if (error.code === 'RPC_REFUSED' || error.code === 'RPC_NODE_ERROR') return;
    if (endpoint.failed(error instanceof TransientError ? error.retryAfterMs : undefined)) {
      this.logger.warn({ endpoint: endpoint.origin, code: error.code }, 'RPC endpoint benched');
    }
  }

  /** Takes from an answer how far the node is, and what time it is on chain. Returns its ledger, if it told one. */
  private learn(endpoint: Endpoint, result: unknown): number {
    const { data } = progressSchema.safeParse(result);
    const ledger = data?.latestLedger ?? data?.sequence;
    if (data === undefined || ledger === undefined) return Number.POSITIVE_INFINITY;
    endpoint.latestLedger = ledger;
    if (!endpoint.isClosed && this.hasCaughtUp(endpoint)) endpoint.close();
    const closeTimeMs = (data.latestLedgerCloseTime ?? data.closeTime ?? 0) * 1000;
    // A close time seen before is older now than when it was first seen: only a new one sets the clock.
    if (closeTimeMs > (this.chainClock?.closeTimeMs ?? 0)) {
      this.chainClock = { closeTimeMs, readAtMs: this.clock.monotonicMs() };
    }
    return ledger;
  }

  private hasCaughtUp(endpoint: Endpoint): boolean {
    const others = this.endpoints.filter((other) => other !== endpoint && other.isClosed);
    const best = Math.max(0, ...others.map((other) => other.latestLedger ?? 0));
    return (endpoint.latestLedger ?? 0) >= best - this.options.maxLagLedgers;
  }

  private async probe(endpoint: Endpoint): Promise<void> {
    endpoint.beginProbe();
    try {
      // An unhealthy node answers with a JSON-RPC error; `learn` closes the circuit of one that has caught up.
      await this.ask(endpoint, 'getHealth', undefined, { schema: healthSchema, signal: this.closing.signal });
      if (endpoint.isClosed) this.logger.info({ endpoint: endpoint.origin }, 'RPC endpoint is back');
      else endpoint.open();
    } catch {
      if (!endpoint.isClosed) endpoint.open();
    }
  }

  private stick(key: string, endpoint: Endpoint): void {
    if (this.sticky.size >= MAX_STICKY_KEYS) this.sticky.clear();
    this.sticky.set(key, endpoint);
  }
}

const noneServes = (): TransientError =>
  new TransientError('RPC_UNAVAILABLE', 'no RPC endpoint serves this network');
