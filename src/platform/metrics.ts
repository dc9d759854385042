/** Where figures go. The default keeps nothing; the operations floor puts a real recorder in its place. */
export interface Metrics {
  /** Adds `by` (default 1) to a counter. */
  count(name: string, labels?: Record<string, string>, by?: number): void;
  /** Records one observation; the unit is in the name (`_ms`, `_stroops`, `_ledgers`). */
  observe(name: string, value: number, labels?: Record<string, string>): void;
}

export const noMetrics: Metrics = { count: () => undefined, observe: () => undefined };
