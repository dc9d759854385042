import type { Clock } from '../platform/clock';
import type { Logger } from '../platform/logger';
import { type JobCounts, type QueueMetrics, toQueueMetrics } from './queue-metrics';

export interface MetricsCacheOptions {
  count: () => Promise<JobCounts>;
  /** Figures older than that are counted anew; the caller gets the old ones and doesn't wait. */
  freshMs: number;
  /** Figures older than that are waited for. */
  staleMs: number;
  clock: Clock;
  logger: Logger;
}

/** Whoever polls the figures must not keep the database counting: it rests so many times as long as a count took. */
const REST_PER_COUNT = 20;

/**
 * Counting a million jobs takes an index scan of a second or so; asking for the figures must not. One count runs at a
 * time however many ask, and what is at hand is given out meanwhile.
 */
export class MetricsCache {
  readonly #options: MetricsCacheOptions;
  #counted: { counts: JobCounts; atMs: number; tookMs: number } | undefined;
  #running: Promise<JobCounts> | undefined;

  constructor(options: MetricsCacheOptions) {
    this.#options = options;
  }

  async get(): Promise<QueueMetrics> {
    return toQueueMetrics(await this.counts());
  }

  async counts(): Promise<JobCounts> {
    const { freshMs, staleMs, clock, logger } = this.#options;
    if (this.#counted === undefined) return this.refresh();
    const ageMs = clock.monotonicMs() - this.#counted.atMs;
    const restMs = this.#counted.tookMs * REST_PER_COUNT;
    if (ageMs > Math.max(staleMs, 2 * restMs)) return this.refresh();
    if (ageMs > Math.max(freshMs, restMs)) {
      this.refresh().catch((error: unknown) =>
        logger.warn({ err: error }, 'the figures of the randomness queue could not be refreshed'),
      );
    }
    return this.#counted.counts;
  }

  /** Counts now, or joins the count that is running. */
  refresh(): Promise<JobCounts> {
    this.#running ??= this.#count().finally(() => (this.#running = undefined));
    return this.#running;
  }

  async #count(): Promise<JobCounts> {
    const atMs = this.#options.clock.monotonicMs();
    const counts = await this.#options.count();
    this.#counted = { counts, atMs, tookMs: this.#options.clock.monotonicMs() - atMs };
    return counts;
  }
}
