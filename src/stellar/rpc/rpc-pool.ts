import { z } from 'zod';
import { sleep, systemClock, type Clock } from '../../platform/clock';
import { PermanentError, TransientError } from '../../platform/errors';
import { silentLogger, type Logger } from '../../platform/logger';
import { noMetrics, type Metrics } from '../../platform/metrics';
import { Endpoint, type EndpointHealth } from './endpoint';
import { callJsonRpc } from './json-rpc';
import { LedgerWatch } from './ledger-watch';
import { RpcNodeError, RpcRefusedError, rpcErrorOf } from './rpc-errors';

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
  /** Endpoints that are known to have come this far are asked first; any answer will do. */
  preferLedger?: number;
  /** Prefers the endpoint that last answered for this key (an account). */
  stickyKey?: string;
  /** Asks this endpoint and no other. */
  only?: Endpoint;
  /** The request is known to be right, so that a refusal is the node's own failing and the next one is asked. */
  isSound?: boolean;
  /** One endpoint, one try: for calls whose refusal means something else once an earlier try may have gone through. */
  once?: boolean;
}

export interface Answer<T> {
  value: T;
  endpoint: Endpoint;
}

const MAX_STICKY_KEYS = 1000;
const MAX_ROUNDS = 5;
const ROUND_PAUSE_MS = 100;
/** A longer wait is the caller's to take: it may have better things to do. */
const MAX_ROUND_PAUSE_MS = 3_000;
/** Nodes tell what others told them; an error's text goes into logs and records. */
const MAX_MESSAGE_LENGTH = 300;
/** A close time further from our own clock is believed only when no node tells a nearer one. */
const PLAUSIBLE_CLOCK_MS = 3_600_000;

const progressSchema = z.object({
  latestLedger: z.number().optional(),
  sequence: z.number().optional(),
  latestLedgerCloseTime: z.coerce.number().optional(),
  closeTime: z.coerce.number().optional(),
});
const networkSchema = z.object({ passphrase: z.string() });
/** Longer than any network's: of what a stranger answers, no more is repeated. */
const PASSPHRASE_LENGTH = 80;
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
  /** Waits for the next ledger. */
  readonly ledgers: LedgerWatch;

  constructor(private readonly options: RpcPoolOptions) {
    if (options.urls.length === 0)
      throw new PermanentError('NO_RPC_ENDPOINT', 'no RPC endpoint is configured');
    this.clock = options.clock ?? systemClock;
    this.logger = options.logger ?? silentLogger();
    this.metrics = options.metrics ?? noMetrics;
    this.ledgers = new LedgerWatch(this.clock);
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
      const asleep = this.allAsleep(options.only);
      failure = asleep ?? failure ?? noneServes();
      // The wish of one to be left alone is no reason to wait while another is awake.
      const pauseMs = asleep?.retryAfterMs ?? ROUND_PAUSE_MS * 2 ** (round - 1) * (0.5 + Math.random());
      if (options.once || round === MAX_ROUNDS || pauseMs > MAX_ROUND_PAUSE_MS) throw failure;
      await sleep(pauseMs, options.signal);
      options.signal.throwIfAborted();
    }
  }

  /** Those that serve our network, as far as known, for questions that one node's word doesn't settle. */
  witnesses(): readonly Endpoint[] {
    return this.endpoints.filter((endpoint) => endpoint.network !== 'foreign');
  }

  /**
   * The lowest of the ledgers that the endpoints in use have told of, null before any: what is signed now is in none up to
   * it, even if one of them counts further than the chain goes.
   */
  floorLedger(): number | null {
    const ledgers = this.witnesses().flatMap(({ isClosed, latestLedger }) =>
      isClosed && latestLedger !== null ? [latestLedger] : [],
    );
    return ledgers.length === 0 ? null : Math.min(...ledgers);
  }

  health(): EndpointHealth[] {
    return this.endpoints.map((endpoint) => endpoint.health());
  }

  /**
   * The network's time now, epoch milliseconds, by the node that is furthest ahead; null before any close time was seen.
   * One node that tells a time far from anyone's would make transactions that never expire: where another is nearer to our
   * own clock, that one counts.
   */
  chainTimeMs(): number | null {
    const times = this.witnesses().flatMap(({ chainTimeMs }) => (chainTimeMs === null ? [] : [chainTimeMs]));
    if (times.length === 0) return null;
    const distance = (timeMs: number): number => Math.abs(timeMs - this.clock.now());
    const plausible = times.filter((timeMs) => distance(timeMs) <= PLAUSIBLE_CLOCK_MS);
    if (plausible.length > 0) return Math.max(...plausible);
    return times.reduce((best, timeMs) => (distance(timeMs) < distance(best) ? timeMs : best));
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
    preferLedger = minLedger,
    only,
  }: Pick<CallOptions<unknown>, 'stickyKey' | 'minLedger' | 'preferLedger' | 'only'>): Endpoint[] {
    for (const endpoint of this.endpoints) if (endpoint.isDueForProbe) void this.probe(endpoint);
    const awake = (only ? [only] : this.witnesses()).filter((endpoint) => endpoint.pauseMs === 0);
    if (only) return awake;
    const closed = awake.filter((endpoint) => endpoint.isClosed);
    // Never without any: the one whose bench ends first is asked all the same.
    if (closed.length === 0) return awake.toSorted((a, b) => a.benchedUntilMs - b.benchedUntilMs).slice(0, 1);
    const favourite = stickyKey === undefined ? undefined : this.sticky.get(stickyKey);
    const rank = (endpoint: Endpoint): number =>
      Number((endpoint.latestLedger ?? 0) < preferLedger) * 2 +
      Number(favourite !== undefined && endpoint !== favourite);
    return closed.toSorted((a, b) => rank(a) - rank(b));
  }

  /** A node of another network would answer every look-up with "never heard of it", which here means "send again". */
  private async admit(endpoint: Endpoint, signal: AbortSignal): Promise<void> {
    const { networkPassphrase: ours } = this.options;
    if (endpoint.network === 'unknown') {
      endpoint.passphrase = await this.passphraseOf(endpoint, signal);
      endpoint.network = endpoint.passphrase === ours ? 'ours' : 'foreign';
    }
    if (endpoint.network === 'foreign') {
      const theirs = (endpoint.passphrase ?? '').slice(0, PASSPHRASE_LENGTH);
      this.logger.error(
        { endpoint: endpoint.origin, theirs, ours },
        'an RPC endpoint serves another network than STELLAR_NETWORK_PASSPHRASE names and is not used',
      );
      throw new TransientError(
        'RPC_FOREIGN_NETWORK',
        `${endpoint.origin} serves another network: "${theirs}", while STELLAR_NETWORK_PASSPHRASE is "${ours}"`,
      );
    }
  }

  private async passphraseOf(endpoint: Endpoint, signal: AbortSignal): Promise<string> {
    try {
      return (await this.ask(endpoint, 'getNetwork', undefined, { schema: networkSchema, signal }))
        .passphrase;
    } catch (error) {
      if (!(error instanceof RpcRefusedError)) throw error;
      // Not the caller's request was refused, but ours: the next endpoint may be a better one.
      throw new TransientError('RPC_UNIDENTIFIED', `${endpoint.origin} doesn't tell which network it serves`);
    }
  }

  private async ask<T>(
    endpoint: Endpoint,
    method: string,
    params: Record<string, unknown> | undefined,
    { schema, signal, minLedger = 0, isSound = false }: CallOptions<T>,
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
        const rpcMessage = reply.message.slice(0, MAX_MESSAGE_LENGTH);
        const facts = { endpoint: endpoint.origin, method, rpcCode: reply.code, rpcMessage };
        throw isSound ? new RpcNodeError(facts) : rpcErrorOf(facts, endpoint);
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

  private settleFailure(
    endpoint: Endpoint,
    error: unknown,
    labels: { endpoint: string; method: string },
  ): void {
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
    const closeTime = data.latestLedgerCloseTime ?? data.closeTime;
    const isFurther = endpoint.learn(ledger, closeTime === undefined ? undefined : closeTime * 1000);
    if (!endpoint.isClosed && this.hasCaughtUp(endpoint)) endpoint.close();
    if (isFurther) this.ledgers.advanced();
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
      await this.admit(endpoint, this.closing.signal);
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
