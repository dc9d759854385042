import type { CounterName, HistogramName, LabelsOf } from './metric-table';

/** Where figures go. The default keeps nothing; the operations floor puts a real recorder in its place. Never throws. */
export interface Metrics {
  /** Adds `by` (default 1) to a counter. */
  count<Name extends CounterName>(name: Name, labels: LabelsOf<Name>, by?: number): void;
  /** Records one observation; the unit is in the name (`_ms`, `_stroops`, `_ledgers`). */
  observe<Name extends HistogramName>(name: Name, value: number, labels: LabelsOf<Name>): void;
}

export const noMetrics: Metrics = { count: () => undefined, observe: () => undefined };
