import { answerWithin } from '../platform/deadline';
import { describeFailure } from '../platform/errors';
import type { Logger } from '../platform/logger';
import { reading, type GaugeReading, type GaugeSource } from './gauge-source';
import type { PrometheusMetrics } from './prometheus-metrics';

/** What a Prometheus server fetches. */
export interface Scrape {
  contentType: string;
  body: string;
}

export interface ScraperOptions {
  metrics: PrometheusMetrics;
  sources: readonly GaugeSource[];
  version: string;
  logger: Logger;
}

/** Prometheus gives up after 10 s unless told otherwise; a source that is away must not cost the figures of the others. */
const SOURCE_TIMEOUT_MS = 2_000;

/** Makes one scrape at a time, however many ask. */
export class Scraper {
  #running: Promise<Scrape> | undefined;

  constructor(private readonly options: ScraperOptions) {
    // An alert on the growth of a series needs its first value, too.
    for (const { name } of options.sources) options.metrics.count('scrape_errors_total', { source: name }, 0);
  }

  /** Never rejects over a source that is away, and answers within a few seconds. */
  scrape(): Promise<Scrape> {
    this.#running ??= this.#gather().finally(() => (this.#running = undefined));
    return this.#running;
  }

  async #gather(): Promise<Scrape> {
    const { metrics, sources, version } = this.options;
    const readings = await Promise.all(sources.map((source) => this.#read(source)));
    const body = await metrics.render([reading('build_info', 1, { version }), ...readings.flat()]);
    return { contentType: metrics.contentType, body };
  }

  async #read(source: GaugeSource): Promise<readonly GaugeReading[]> {
    const { metrics, logger } = this.options;
    try {
      return await answerWithin(
        SOURCE_TIMEOUT_MS,
        'SOURCE_TIMEOUT',
        Promise.resolve().then(() => source.read()),
      );
    } catch (error) {
      metrics.count('scrape_errors_total', { source: source.name });
      logger.warn({ source: source.name, ...describeFailure(error) }, 'gauges left out of a scrape');
      return [];
    }
  }
}
