import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import {
  metricTable,
  type CounterName,
  type HistogramName,
  type LabelsOf,
  type MetricDefinition,
  type MetricName,
} from '../platform/metric-table';
import type { Metrics } from '../platform/metrics';
import type { GaugeReading } from './gauge-source';

const PREFIX = 'sorolane_';
const MS_PER_SECOND = 1000;
/** The runtime's own measuring of the event loop wakes it so often; its default, ten times as often, shows on an idle process. */
const EVENT_LOOP_PRECISION_MS = 100;

const definitions: Record<MetricName, MetricDefinition> = metricTable;
const isTime = (name: MetricName): boolean => name.endsWith('_ms');

/** The name in a scrape. Prometheus wants seconds. */
export const exposedName = (name: MetricName): string =>
  PREFIX + (isTime(name) ? name.replace(/_ms$/, '_seconds') : name);

const inExposedUnit = (name: MetricName, value: number): number =>
  isTime(name) ? value / MS_PER_SECOND : value;

/** Keeps what is counted and observed, and this process's own figures, for a Prometheus server to fetch. */
export class PrometheusMetrics implements Metrics {
  readonly #registry = new Registry();
  readonly #counters = new Map<MetricName, Counter>();
  readonly #histograms = new Map<MetricName, Histogram>();

  constructor() {
    const registers = [this.#registry];
    for (const [name, { kind, help, labels, buckets }] of entries()) {
      const base = { name: exposedName(name), help, labelNames: [...labels], registers };
      if (kind === 'counter') this.#counters.set(name, new Counter(base));
      if (kind === 'histogram')
        this.#histograms.set(
          name,
          new Histogram({ ...base, buckets: (buckets ?? []).map((bound) => inExposedUnit(name, bound)) }),
        );
    }
    collectDefaultMetrics({
      register: this.#registry,
      eventLoopMonitoringPrecision: EVENT_LOOP_PRECISION_MS,
    });
  }

  // What prom-client would throw over (no number, a label too many) must not fail the work that the figure tells of.

  count<Name extends CounterName>(name: Name, labels: LabelsOf<Name>, by = 1): void {
    if (by >= 0 && Number.isFinite(by)) this.#counters.get(name)?.inc(ownLabels(name, labels), by);
  }

  observe<Name extends HistogramName>(name: Name, value: number, labels: LabelsOf<Name>): void {
    if (!Number.isFinite(value)) return;
    this.#histograms.get(name)?.observe(ownLabels(name, labels), inExposedUnit(name, value));
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** The text of a scrape. Gauges hold for this one scrape; one without a reading is left out. */
  async render(readings: readonly GaugeReading[]): Promise<string> {
    const once = new Registry();
    const gauges = new Map<MetricName, Gauge>();
    for (const { name, value, labels } of readings) {
      let gauge = gauges.get(name);
      if (gauge === undefined) {
        const { help, labels: labelNames } = definitions[name];
        gauge = new Gauge({ name: exposedName(name), help, labelNames: [...labelNames], registers: [once] });
        gauges.set(name, gauge);
      }
      gauge.set(labels, inExposedUnit(name, value));
    }
    const [kept, read] = await Promise.all([this.#registry.metrics(), once.metrics()]);
    return kept + read;
  }
}

const ownLabels = (name: MetricName, labels: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(definitions[name].labels.map((label) => [label, labels[label] ?? '']));

const entries = (): [MetricName, MetricDefinition][] =>
  Object.entries(definitions) as [MetricName, MetricDefinition][];
