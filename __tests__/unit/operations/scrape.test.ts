import { cachedSource, reading, type GaugeSource } from '../../../src/operations/gauge-source';
import { PrometheusMetrics } from '../../../src/operations/prometheus-metrics';
import { Scraper } from '../../../src/operations/scrape';
import { silentLogger } from '../../../src/platform/logger';
import { parsePrometheusText, valueOf } from '../../support/prometheus-text';

const scraperOf = (metrics: PrometheusMetrics, ...sources: GaugeSource[]): Scraper =>
  new Scraper({ metrics, sources, version: '1.2.3', logger: silentLogger() });

const scrapeOf = async (scraper: Scraper) => parsePrometheusText((await scraper.scrape()).body);

describe('what is recorded', () => {
  test('comes out under the prefix, times in seconds', async () => {
    const metrics = new PrometheusMetrics();
    metrics.count('worker_attempts_total', { pipeline: 'verification', outcome: 'completed' });
    metrics.count('worker_attempts_total', { pipeline: 'verification', outcome: 'completed' }, 2);
    metrics.observe('stellar_rpc_latency_ms', 40, { endpoint: 'http://node', method: 'getHealth' });
    metrics.observe('stellar_inclusion_ledgers', 2, {});
    const families = await scrapeOf(scraperOf(metrics));

    const attempts = { pipeline: 'verification', outcome: 'completed' };
    expect(valueOf(families, 'sorolane_worker_attempts_total', attempts)).toBe(3);
    const latency = 'sorolane_stellar_rpc_latency_seconds';
    expect(valueOf(families, `${latency}_sum`)).toBe(0.04);
    expect(valueOf(families, `${latency}_bucket`, { le: '0.025' })).toBe(0);
    expect(valueOf(families, `${latency}_bucket`, { le: '0.05' })).toBe(1);
    expect(valueOf(families, 'sorolane_stellar_inclusion_ledgers_bucket', { le: '1' })).toBe(0);
    expect(valueOf(families, 'sorolane_stellar_inclusion_ledgers_bucket', { le: '2' })).toBe(1);
    expect(valueOf(families, 'sorolane_build_info', { version: '1.2.3' })).toBe(1);
    expect(families.get('process_cpu_seconds_total')?.kind).toBe('counter');
  });

  test('never throws, whatever the figure', async () => {
    const metrics = new PrometheusMetrics();
    for (const none of [Number.NaN, -1, Infinity]) metrics.count('stellar_resends_total', {}, none);
    metrics.observe('worker_renewal_lag_ms', Number.NaN, {});
    const more = { pipeline: 'p', outcome: 'o', requestId: 'one too many' };
    metrics.count('worker_attempts_total', more);
    const families = await scrapeOf(scraperOf(metrics));
    expect(valueOf(families, 'sorolane_stellar_resends_total')).toBe(0);
    expect(valueOf(families, 'sorolane_worker_renewal_lag_seconds_count')).toBe(0);
    expect(families.get('sorolane_worker_attempts_total')?.samples).toEqual([
      { name: 'sorolane_worker_attempts_total', labels: { pipeline: 'p', outcome: 'o' }, value: 1 },
    ]);
  });
});

describe('a scrape', () => {
  afterEach(() => jest.useRealTimers());

  test('reads gauges anew, and keeps none that has gone', async () => {
    let states = ['queued', 'failed'];
    const jobs: GaugeSource = {
      name: 'jobs',
      read: () => states.map((state) => reading('jobs', 1, { pipeline: 'p', state })),
    };
    const scraper = scraperOf(new PrometheusMetrics(), jobs);
    expect((await scrapeOf(scraper)).get('sorolane_jobs')?.samples).toHaveLength(2);
    states = ['queued'];
    expect((await scrapeOf(scraper)).get('sorolane_jobs')?.samples).toHaveLength(1);
    states = [];
    expect((await scrapeOf(scraper)).has('sorolane_jobs')).toBe(false);
  });

  test('leaves out what fails, throws or does not answer, counts it, and gives the rest', async () => {
    jest.useFakeTimers({
      doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask', 'hrtime', 'performance'],
    });
    const metrics = new PrometheusMetrics();
    const scraper = scraperOf(
      metrics,
      { name: 'rejects', read: () => Promise.reject(new Error('away')) },
      {
        name: 'throws',
        read: () => {
          throw new Error('broken');
        },
      },
      { name: 'hangs', read: () => new Promise(() => undefined) },
      { name: 'works', read: () => [reading('workers_alive', 2, {})] },
    );
    const scraping = scrapeOf(scraper);
    await jest.advanceTimersByTimeAsync(2_000);
    const families = await scraping;
    expect(valueOf(families, 'sorolane_workers_alive')).toBe(2);
    expect(
      families.get('sorolane_scrape_errors_total')?.samples.map(({ labels, value }) => [labels, value]),
    ).toEqual([
      [{ source: 'rejects' }, 1],
      [{ source: 'throws' }, 1],
      [{ source: 'hangs' }, 1],
      [{ source: 'works' }, 0],
    ]);
  });

  test('many at once ask each source once', async () => {
    let reads = 0;
    const counted: GaugeSource = {
      name: 'counted',
      read: () => {
        reads += 1;
        return Promise.resolve([]);
      },
    };
    const scraper = scraperOf(new PrometheusMetrics(), counted);
    const bodies = await Promise.all(Array.from({ length: 20 }, () => scraper.scrape()));
    expect(reads).toBe(1);
    expect(new Set(bodies).size).toBe(1);
  });
});

describe('a cached source', () => {
  function cached() {
    let nowMs = 0;
    let tookMs = 0;
    let reads = 0;
    let fails = false;
    const source = cachedSource(
      {
        name: 'slow',
        read: async () => {
          reads += 1;
          await Promise.resolve();
          nowMs += tookMs;
          if (fails) throw new Error('away');
          return [reading('workers_alive', reads, {})];
        },
      },
      { now: () => nowMs, monotonicMs: () => nowMs },
    );
    return {
      read: async () => (await source.read())[0]!.value,
      pass: (ms: number) => (nowMs += ms),
      takes: (ms: number) => (tookMs = ms),
      failing: (does: boolean) => (fails = does),
      reads: () => reads,
    };
  }

  test('reads once while that is fresh, and one at a time', async () => {
    const source = cached();
    expect(await Promise.all([source.read(), source.read()])).toEqual([1, 1]);
    source.pass(999);
    expect(await source.read()).toBe(1);
    expect(source.reads()).toBe(1);
    source.pass(1_001);
    expect(await source.read()).toBe(2);
  });

  test('rests the longer the longer a read took, and then gives out the old while it reads the new', async () => {
    const source = cached();
    source.takes(1_000);
    await source.read();
    source.pass(9_999);
    expect(await source.read()).toBe(1);
    expect(source.reads()).toBe(1);
    source.pass(1);
    expect(await source.read()).toBe(1);
    expect(source.reads()).toBe(2);
    expect(await source.read()).toBe(2);
  });

  test('does not keep a failure, nor give out what is too old instead', async () => {
    const source = cached();
    await source.read();
    source.failing(true);
    source.pass(1_000);
    expect(await source.read()).toBe(1);
    source.pass(1_000);
    await expect(source.read()).rejects.toThrow('away');
    source.failing(false);
    expect(await source.read()).toBe(source.reads());
  });
});
