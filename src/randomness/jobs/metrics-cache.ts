import type { Clock } from '../../platform/clock';
import type { Logger } from '../../platform/logger';
import { type JobCounts, type QueueMetrics, toQueueMetrics } from './queue-metrics';

export interface MetricsCacheOptions {
  count: () => Promise<JobCounts>;
  /** Pause between two counts while somebody asks. */
  freshMs: number;
  clock: Clock;
  logger: Logger;
}

/** Whoever polls the figures must not keep the database counting: it rests so many times as long as a count took. */
const REST_PER_COUNT = 20;
/** Figures are kept fresh for so long after somebody asked for them: longer than any monitor's pause. */
const WANTED_FOR_MS = 600_000;
/** A count may take so long before the figures of the one before are held back. */
const SLOW_COUNT_MS = 10_000;

/**
 * Counting a million jobs takes an index scan of a second or so; asking for the figures must not. They are counted in the
 * background, one count at a time, for as long as anybody asks now and then, and what is at hand is given out. Only the
 * first to ask after a long silence waits for a count.
 */
export class MetricsCache {
  readonly #options: MetricsCacheOptions;
  #counted: JobCounts | undefined;
  #running: Promise<JobCounts> | undefined;
  #next: NodeJS.Timeout | undefined;
  #wantedUntilMs = 0;
  #goodUntilMs = 0;

  constructor(options: MetricsCacheOptions) {
    this.#options = options;
  }

  async get(): Promise<QueueMetrics> {
    return toQueueMetrics(await this.counts());
  }

  async counts(): Promise<JobCounts> {
    const nowMs = this.#options.clock.monotonicMs();
    this.#wantedUntilMs = nowMs + WANTED_FOR_MS;
    // A database that hangs answers no count; what it said long ago must not pass for what is.
    if (this.#counted === undefined || nowMs > this.#goodUntilMs) return this.refresh();
    return this.#counted;
  }

  /** Counts now, or joins the count that is running. */
  refresh(): Promise<JobCounts> {
    this.#running ??= this.#count().finally(() => (this.#running = undefined));
    return this.#running;
  }

  /** Ends the counting in the background. */
  close(): void {
    clearTimeout(this.#next);
    this.#wantedUntilMs = 0;
    this.#counted = undefined;
  }

  async #count(): Promise<JobCounts> {
    const { clock, count, freshMs } = this.#options;
    const startedMs = clock.monotonicMs();
    clearTimeout(this.#next);
    try {
      this.#counted = await count();
      return this.#counted;
    } catch (error) {
      // Old figures must not pass for new ones while the database is away.
      this.#counted = undefined;
      throw error;
    } finally {
      const endedMs = clock.monotonicMs();
      const restMs = Math.max(freshMs, (endedMs - startedMs) * REST_PER_COUNT);
      this.#goodUntilMs = endedMs + restMs + Math.max(restMs, SLOW_COUNT_MS);
      this.#next = setTimeout(() => this.#again(), restMs).unref();
    }
  }

  #again(): void {
    const { clock, logger } = this.#options;
    if (clock.monotonicMs() > this.#wantedUntilMs) {
      this.#counted = undefined;
      return;
    }
    this.refresh().catch((error: unknown) =>
      logger.warn({ err: error }, 'the figures of the randomness queue could not be counted'),
    );
  }
}
