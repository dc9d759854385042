import type { Clock } from '../platform/clock';
import type { GaugeName, LabelsOf } from '../platform/metric-table';

export interface GaugeReading {
  name: GaugeName;
  value: number;
  labels: Readonly<Record<string, string>>;
}

/** Figures that are read when somebody asks for them. */
export interface GaugeSource {
  /** Under this name a failure is counted. */
  readonly name: string;
  /** Throws, rejects or never answers when what it asks is away. */
  read(): readonly GaugeReading[] | Promise<readonly GaugeReading[]>;
}

export const reading = <Name extends GaugeName>(
  name: Name,
  value: number,
  labels: LabelsOf<Name>,
): GaugeReading => ({ name, value, labels });

const FRESH_MS = 1_000;
/** A count that takes long is not repeated before so many times as long have passed, however often one scrapes. */
const REST_PER_READ = 10;

/**
 * Reads at most one at a time, and gives out what it read while that is fresh. For as long again it is given out while the
 * next read is on its way, so that one that takes longer than a scrape may wait does not cost a scrape each time.
 */
export function cachedSource(source: GaugeSource, clock: Clock): GaugeSource {
  let kept: { readings: readonly GaugeReading[]; atMs: number; restMs: number } | undefined;
  let running: Promise<readonly GaugeReading[]> | undefined;
  const readNow = async (): Promise<readonly GaugeReading[]> => {
    const startedMs = clock.monotonicMs();
    const readings = await source.read();
    const atMs = clock.monotonicMs();
    kept = { readings, atMs, restMs: Math.max(FRESH_MS, REST_PER_READ * (atMs - startedMs)) };
    return readings;
  };
  return {
    name: source.name,
    read: () => {
      const ageInRests = kept === undefined ? Infinity : (clock.monotonicMs() - kept.atMs) / kept.restMs;
      if (kept !== undefined && ageInRests < 1) return kept.readings;
      running ??= readNow().finally(() => (running = undefined));
      if (kept === undefined || ageInRests >= 2) return running;
      // Whoever asks once this has grown too old gets the failure.
      running.catch(() => undefined);
      return kept.readings;
    },
  };
}
