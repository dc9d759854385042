import { sleep, systemClock, type Clock } from '../platform/clock';
import { makeWorkerId, type WorkerId } from '../platform/ids';
import type { Logger } from '../platform/logger';
import { noMetrics, type Metrics } from '../platform/metrics';
import { Connectivity } from './connectivity';
import { HeartbeatService } from './heartbeat-service';
import { IdleGate } from './idle-gate';
import type { LaneHandle } from './lane';
import { LeaseKeeper } from './lease-keeper';
import { Tally } from './tally';
import { createWorkerEvents } from './worker-events';
import type { LaneReport } from './worker-heartbeat.model';
import type { WorkerHeartbeatRepository } from './worker-heartbeats';
import type { WorkSource } from './work-source';

export interface WorkerPoolOptions {
  sources: readonly WorkSource[];
  heartbeats: WorkerHeartbeatRepository;
  logger: Logger;
  metrics?: Metrics;
  /** Longest pause between two looks for work while there is none; also how often each process tidies its queues. */
  pollIntervalMs: number;
  /** Jobs in one cycle, shared by the lanes. A heartbeat follows each. */
  batchSize: number;
  heartbeatIntervalMs: number;
  /** How long a stop waits for the jobs in hand before it aborts them. */
  drainTimeoutMs: number;
  /** How long an aborted handler may take to return. */
  abortGraceMs?: number;
  workerId?: WorkerId;
  clock?: Clock;
  /** In 0 … 1, as Math.random. */
  random?: () => number;
}

interface Crew {
  source: WorkSource;
  gate: IdleGate;
  lanes: LaneHandle[];
}

const DEFAULT_ABORT_GRACE_MS = 5000;
/** For the writes that hand aborted jobs back. Jobs that don't make it are swept when their lease runs out. */
const HAND_BACK_MS = 3000;

/**
 * The lanes of one process over any number of pipelines. Outlives outages of the database; ends only by `stop`.
 *
 *     start ──► running ──stop──► draining ──jobs done, or aborted at the deadline and handed back──► stopped
 */
export class WorkerPool {
  readonly events = createWorkerEvents();
  readonly workerId: WorkerId;
  readonly #options: WorkerPoolOptions;
  readonly #random: () => number;
  readonly #crews: Crew[];
  readonly #tally = new Tally();
  readonly #connectivity: Connectivity;
  readonly #keeper: LeaseKeeper;
  readonly #heartbeat: HeartbeatService;
  readonly #stopping = new AbortController();
  #running: Promise<unknown> | undefined;
  #stopped: Promise<void> | undefined;
  #attemptsInCycle = 0;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    this.workerId = options.workerId ?? makeWorkerId();
    this.#random = options.random ?? Math.random;
    const { events, workerId } = this;
    const clock = options.clock ?? systemClock;
    const logger = options.logger.child({ workerId });
    const connectivity = new Connectivity(logger, events);
    const keeper = new LeaseKeeper({ clock, events, connectivity, metrics: options.metrics ?? noMetrics });
    this.#connectivity = connectivity;
    this.#keeper = keeper;
    let laneNumber = 0;
    this.#crews = options.sources.map((source) => {
      const gate = new IdleGate();
      const lanes = Array.from({ length: source.lanes }, () =>
        source.createLane(laneNumber++, {
          workerId,
          keeper,
          events,
          connectivity,
          tally: this.#tally,
          clock,
          logger,
          metrics: options.metrics ?? noMetrics,
          random: this.#random,
          abortGraceMs: options.abortGraceMs ?? DEFAULT_ABORT_GRACE_MS,
          gate,
          pollIntervalMs: options.pollIntervalMs,
          isStopping: () => this.#stopping.signal.aborted,
          onProgress: (what) => this.#onProgress(what),
        }),
      );
      return { source, gate, lanes };
    });
    this.#heartbeat = new HeartbeatService({
      workerId,
      heartbeats: options.heartbeats,
      intervalMs: options.heartbeatIntervalMs,
      tally: this.#tally,
      lanes: () => this.lanes(),
      events,
      logger,
    });
  }

  /** False while the database does not answer, and once stopped. */
  get healthy(): boolean {
    return this.#running !== undefined && !this.#stopping.signal.aborted && this.#connectivity.reachable;
  }

  /** Jobs in hand. */
  get busy(): number {
    return this.#keeper.size;
  }

  /** How many lanes each pipeline has here, and how many of them are at work. */
  lanes(): LaneReport[] {
    return this.#crews.map(({ source, lanes }) => ({
      pipeline: source.pipeline,
      lanes: lanes.length,
      busy: lanes.filter(({ busy }) => busy).length,
    }));
  }

  /** @throws PermanentError INDEX_MISSING when a queue can't be worked on safely. */
  async start(): Promise<void> {
    await Promise.all(this.#crews.map(({ source }) => source.verify()));
    if (this.#stopping.signal.aborted) return;
    await this.#heartbeat.start();
    this.#running = Promise.all([
      ...this.#lanes().map((lane) => lane.run()),
      ...this.#crews.flatMap(({ source, gate }) => [
        // Claims tidy up only when they find nothing; while there is always something ready, due retries need this.
        this.#maintain(async () => {
          if (await source.tidy()) gate.wakeAll();
        }),
        // Apart from it: what became of a dead job may take the chain's time to find out.
        this.#maintain(() => source.projectDeadLetters(this.#stopping.signal)),
      ]),
    ]);
  }

  /** A hint that there is work: one idle lane of each pipeline looks, and wakes others if there is. */
  wake(): void {
    for (const { gate } of this.#crews) gate.wakeOne();
  }

  /** Drains and stops; may be called again. The leases are renewed until the last job is done or handed back. */
  stop(): Promise<void> {
    this.#stopped ??= this.#drain();
    return this.#stopped;
  }

  async #drain(): Promise<void> {
    const { drainTimeoutMs, abortGraceMs = DEFAULT_ABORT_GRACE_MS } = this.#options;
    this.#stopping.abort();
    for (const { gate } of this.#crews) gate.close();
    void this.#heartbeat.draining();
    if (!(await this.#idleWithin(drainTimeoutMs))) {
      for (const lane of this.#lanes()) lane.expire();
      await this.#idleWithin(abortGraceMs + HAND_BACK_MS);
    }
    this.#keeper.stop();
    await this.#heartbeat.stop();
  }

  async #idleWithin(ms: number): Promise<boolean> {
    const timer = new AbortController();
    const idle = await Promise.race([
      Promise.resolve(this.#running).then(() => true),
      sleep(ms, timer.signal).then(() => false),
    ]);
    timer.abort();
    return idle;
  }

  #lanes(): LaneHandle[] {
    return this.#crews.flatMap(({ lanes }) => lanes);
  }

  async #maintain(step: () => Promise<void>): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        await step();
        this.#connectivity.answered();
      } catch (error) {
        this.#connectivity.failed('maintenance', error);
      }
      await sleep(this.#options.pollIntervalMs * (0.5 + this.#random() / 2), signal);
    }
  }

  /** A cycle is `batchSize` attempts, or fewer when the work ran out before. */
  #onProgress(what: 'attempt' | 'idle'): void {
    if (what === 'attempt') this.#attemptsInCycle++;
    const ended =
      what === 'idle' ? this.#attemptsInCycle > 0 : this.#attemptsInCycle >= this.#options.batchSize;
    if (!ended) return;
    this.#attemptsInCycle = 0;
    void this.#heartbeat.beat();
  }
}
