import { sleep, systemClock, type Clock } from '../platform/clock';
import { describeFailure, type Failure } from '../platform/errors';
import { makeWorkerId, type WorkerId } from '../platform/ids';
import { silentLogger, type Logger } from '../platform/logger';
import { noMetrics, type Metrics } from '../platform/metrics';
import { ledgerOf } from './contract-groups';
import { Dispatcher } from './dispatcher';
import {
  defineEventHandler,
  type ContractEvent,
  type ContractFollowing,
  type EventHandler,
} from './event-handler';
import { EventIntake, type IntakeRound } from './event-intake';
import { EventQueue } from './event-queue';
import { EventRouter } from './event-router';
import type { ContractValueDecoder, EventSource } from './event-source';
import { HandlerRegistry } from './handler-registry';
import { describeOtherChain, problemsOf, type IngestionHealth } from './ingestion-health';
import type { IngestionStateRepository } from './ingestion-state.repository';
import { defaultTuning, type IngestionTuning } from './ingestion-tuning';
import { Leadership } from './leadership';
import { MaintenanceSchedule } from './maintenance-schedule';
import type { EventQueueStats } from './queue-stats';

export interface EventPropagatorOptions {
  source: EventSource;
  decode: ContractValueDecoder;
  contractIds: readonly string[];
  handlers?: readonly EventHandler[];
  queuePath?: string;
  /** Where reading goes on at this start, whatever was stored of an earlier one. */
  cursorOverride?: string;
  /** Where a contract that was never read begins. 0, or left out: the newest ledger. */
  startLedger?: number;
  /** Shared with other ingesters, of which one then leads. Without it this process always reads. */
  state?: IngestionStateRepository;
  workerId?: WorkerId;
  tuning?: Partial<IngestionTuning>;
  logger?: Logger;
  metrics?: Metrics;
  clock?: Clock;
}

/** Polls a chain for contract events, stores them, and hands them to handlers: at least once to each, whatever fails. */
export class EventPropagator implements ContractFollowing {
  readonly queue: EventQueue;
  private readonly registry: HandlerRegistry;
  private readonly dispatcher: Dispatcher;
  private readonly intake: EventIntake;
  private readonly leadership: Leadership | null;
  private readonly maintenance: MaintenanceSchedule;
  private readonly tuning: IngestionTuning;
  private readonly logger: Logger;
  private readonly clock: Clock;
  private readonly stopping = new AbortController();
  private loop: Promise<void> | null = null;
  private lastRound: { round: IntakeRound; at: number } | null = null;
  private behindSince: number | null = null;
  private latestLedger: number | null = null;
  private failures = 0;
  private lastFailure: Failure | null = null;
  private overridden = false;

  constructor(private readonly options: EventPropagatorOptions) {
    const { source, decode, contractIds, startLedger, state, handlers = [] } = options;
    const { clock = systemClock, logger = silentLogger(), metrics = noMetrics } = options;
    const holder = options.workerId ?? makeWorkerId();
    const tuning = { ...defaultTuning, ...options.tuning };
    this.tuning = tuning;
    this.clock = clock;
    this.logger = logger;
    this.registry = new HandlerRegistry(tuning.retry);
    for (const handler of handlers) this.registry.register(handler);
    const queue = new EventQueue(options.queuePath, tuning.retry.normal.maxAttempts, {
      clock,
      logger,
      holder,
      consumers: 'handlers',
      leaseMs: tuning.deliveryLeaseMs,
      minFreeDiskBytes: tuning.minFreeDiskBytes,
      ...(tuning.maxFileBytes === undefined ? {} : { maxFileBytes: tuning.maxFileBytes }),
    });
    this.queue = queue;
    const router = new EventRouter(queue.store, queue.deliveries, this.registry, decode, logger);
    this.dispatcher = new Dispatcher({
      queue,
      registry: this.registry,
      router,
      following: this,
      clock,
      logger,
      metrics,
      processIntervalMs: tuning.processIntervalMs,
      leaseMs: tuning.deliveryLeaseMs,
      handlerTimeoutMs: tuning.handlerTimeoutMs,
      maxCalls: tuning.maxCalls,
    });
    this.intake = new EventIntake({
      source,
      queue,
      contractIds,
      limit: tuning.pageLimit,
      maxPending: tuning.maxPending,
      logger,
      metrics,
      onStored: () => this.dispatcher.wake(),
      ...(startLedger === undefined ? {} : { startLedger }),
    });
    this.leadership =
      state === undefined
        ? null
        : new Leadership({ state, queue, holder, leaseMs: tuning.leaderLeaseMs, clock, logger });
    this.maintenance = new MaintenanceSchedule({
      queue,
      logger,
      intervalMs: tuning.maintenanceIntervalMs,
      retentionMs: tuning.retentionMs,
      compressAfterMs: tuning.compressAfterMs,
    });
  }

  /** Adds a handler, or a plain function as one that takes every event. Before `start`: routing never looks back. */
  onEvent(handler: EventHandler | ((event: ContractEvent) => Promise<void>)): void {
    this.registry.register(typeof handler === 'function' ? this.wrap(handler) : handler);
  }

  follow(contractId: string, startLedger: number): void {
    if (this.queue.followed.follow(contractId, startLedger)) {
      this.logger.info({ contractId, startLedger }, 'a contract is followed from now on');
    }
  }

  unfollow(contractId: string): void {
    if (this.options.contractIds.includes(contractId)) return;
    if (this.queue.followed.unfollow(contractId))
      this.logger.info({ contractId }, 'a contract is no longer followed');
  }

  /** Delivers what an earlier process left behind. `start` does the same by itself; this one waits for the end of it. */
  async recoverPendingEvents(): Promise<number> {
    const recovered = this.queue.recoverPending();
    await this.dispatcher.drain();
    return recovered;
  }

  start(): void {
    if (this.loop !== null) return;
    this.warnOfOrphans();
    this.queue.recoverPending();
    this.dispatcher.start();
    this.maintenance.start();
    this.loop = this.poll();
  }

  /** Stops reading, lets running handlers finish for at most `graceMs`, and closes the queue file. */
  async stop(graceMs = this.tuning.stopGraceMs): Promise<void> {
    this.stopping.abort();
    await this.loop;
    await this.maintenance.stop();
    await this.dispatcher.stop(graceMs);
    await this.shareProgress();
    await this.leadership
      ?.release()
      .catch((error: unknown) => this.warn(error, 'the lead could not be given up'));
    this.queue.close();
  }

  getQueueStats(): EventQueueStats {
    return this.queue.getStats();
  }

  health(): IngestionHealth {
    const { store, deliveries } = this.queue;
    const { lastRound, behindSince } = this;
    const facts = {
      role: this.role(),
      lastRound: lastRound === null ? null : { kind: lastRound.round.kind, at: isoTime(lastRound.at) },
      behindSince: behindSince === null ? null : isoTime(behindSince),
      otherChain: describeOtherChain(lastRound?.round.otherChain ?? null),
      lagLedgers: this.lagLedgers(),
      failures: this.failures,
      lastFailure: this.lastFailure,
      storageFull: lastRound?.round.kind === 'full',
      queue: this.queue.getStats(),
      handlers: deliveries.backlog(),
      gaps: store.gaps().map(({ foundAt, ...gap }) => ({ ...gap, foundAt: isoTime(foundAt) })),
      setAside: this.queue.setAside,
    };
    const problems = problemsOf(facts, this.tuning, this.clock.now());
    return { healthy: problems.length === 0, problems, ...facts };
  }

  private async poll(): Promise<void> {
    const { signal } = this.stopping;
    while (!signal.aborted) {
      let delayMs = this.tuning.pollIntervalMs;
      try {
        if (await this.mayRead()) delayMs = await this.readOnce();
        this.failures = 0;
        this.lastFailure = null;
      } catch (error) {
        delayMs = this.onFailure(error, delayMs);
      }
      await sleep(delayMs, signal);
    }
  }

  private async mayRead(): Promise<boolean> {
    if (this.leadership !== null && !(await this.leadership.hold())) {
      this.lastRound = null;
      this.behindSince = null;
      return false;
    }
    const { cursorOverride, contractIds } = this.options;
    if (cursorOverride !== undefined && !this.overridden) {
      this.queue.store.moveTo(
        new Map(contractIds.map((contractId) => [contractId, { cursor: cursorOverride }])),
      );
      this.queue.store.forgetTip();
      this.overridden = true;
    }
    return true;
  }

  /** One round. Returns how long to wait for the next, milliseconds. */
  private async readOnce(): Promise<number> {
    const signals = [this.stopping.signal, ...(this.leadership === null ? [] : [this.leadership.signal])];
    const round = await this.intake.round(AbortSignal.any(signals));
    this.note(round);
    await this.shareProgress();
    switch (round.kind) {
      case 'back_pressure':
        return this.tuning.processIntervalMs;
      case 'full':
        return this.queue.makeRoom() > 0 ? this.tuning.processIntervalMs : this.tuning.pollIntervalMs;
      default:
        return this.tuning.pollIntervalMs;
    }
  }

  private note(round: IntakeRound): void {
    if (round.kind !== this.lastRound?.round.kind) this.tell(round);
    this.lastRound = { round, at: this.clock.now() };
    this.behindSince = round.kind === 'caught_up' ? null : (this.behindSince ?? this.clock.now());
    this.latestLedger = round.latestLedger ?? this.latestLedger;
  }

  private tell({ otherChain, ...round }: IntakeRound): void {
    this.logger.info(round, 'event intake');
    if (otherChain === null) return;
    this.logger.error(
      { ...describeOtherChain(otherChain) },
      'the network began anew: nothing is read from it until the queue starts over (see health)',
    );
  }

  private onFailure(error: unknown, intervalMs: number): number {
    if (this.stopping.signal.aborted) return 0;
    this.failures += 1;
    const failure = describeFailure(error);
    this.lastFailure = failure;
    this.logger.warn({ ...failure, failures: this.failures }, 'event intake failed');
    const backOffMs = Math.min(
      this.tuning.maxPollBackOffMs,
      intervalMs * 2 ** Math.min(this.failures - 1, 10),
    );
    return Math.max(backOffMs, failure.retryAfterMs ?? 0);
  }

  /** A checkpoint that could not be shared only means more to read again for whoever takes over. */
  private async shareProgress(): Promise<void> {
    try {
      await this.leadership?.checkpoint();
    } catch (error) {
      this.warn(error, 'the ingestion checkpoint could not be shared');
    }
  }

  private role(): IngestionHealth['role'] {
    if (this.loop === null || this.stopping.signal.aborted) return 'stopped';
    return this.leadership === null || this.leadership.leads ? 'leading' : 'following';
  }

  /** Servers that are behind us don't know how far the network is. */
  private lagLedgers(): number | null {
    const kind = this.lastRound?.round.kind;
    if (this.latestLedger === null || kind === 'lagging' || kind === 'other_chain') return null;
    const positions = this.queue.store.positions();
    const contractIds = [...this.options.contractIds, ...this.queue.followed.list()];
    const reached = contractIds.flatMap((contractId) => {
      const position = positions.get(contractId);
      return position === undefined ? [] : (ledgerOf(position) ?? []);
    });
    return reached.length === 0 ? null : Math.max(0, this.latestLedger + 1 - Math.min(...reached));
  }

  /** What waits for a handler that no longer exists keeps its event open, and with it the shared checkpoint. */
  private warnOfOrphans(): void {
    const known = new Set(this.registry.all().map(({ handler }) => handler.name));
    for (const { handler, ready, waiting } of this.queue.deliveries.backlog()) {
      if (known.has(handler) || ready + waiting === 0) continue;
      this.logger.warn(
        { handler, events: ready + waiting },
        'events wait for a handler that is not registered',
      );
    }
  }

  private wrap(listener: (event: ContractEvent) => Promise<void>): EventHandler {
    return defineEventHandler({
      name: `on-event-${this.registry.all().length + 1}`,
      topics: ['*'],
      ordered: true,
      concurrency: 1,
      priority: 'normal',
      handle: async (events) => {
        for (const event of events) await listener(event);
        return undefined;
      },
    });
  }

  private warn(error: unknown, message: string): void {
    this.logger.warn({ ...describeFailure(error) }, message);
  }
}

const isoTime = (ms: number): string => new Date(ms).toISOString();
