import type { Metrics } from '../../src/platform/metrics';

export interface RecordingMetrics extends Metrics {
  counted(name: string): number;
  observed(name: string): number[];
}

/** Keeps every figure, without its labels. */
export function recordingMetrics(): RecordingMetrics {
  const counts = new Map<string, number>();
  const observations = new Map<string, number[]>();
  return {
    count: (name, _labels, by = 1) => void counts.set(name, (counts.get(name) ?? 0) + by),
    observe: (name, value) => void observations.set(name, [...(observations.get(name) ?? []), value]),
    counted: (name) => counts.get(name) ?? 0,
    observed: (name) => observations.get(name) ?? [],
  };
}
