import type { IngestionHealth } from '../ingestion/ingestion-health';
import { systemClock, type Clock } from '../platform/clock';
import type { DeadLetterRepository } from '../queue/dead-letters';
import type { LaneReport } from '../worker/worker-heartbeat.model';
import type { WorkerHeartbeatRepository } from '../worker/worker-heartbeats';
import { cachedSource, reading, type GaugeSource } from './gauge-source';

export interface HouseGaugesOptions {
  heartbeats: WorkerHeartbeatRepository;
  /** A worker is alive while its last heartbeat is younger than this. */
  workerStaleMs: number;
  deadLetters: DeadLetterRepository;
  pipelines: readonly { name: string; countJobs: () => Promise<Readonly<Record<string, number>>> }[];
  /** Names that dead letters may carry, so that one without any shows 0. */
  deadLetterPipelines: readonly string[];
  /** Lanes of this process, if it has any. */
  lanes: (() => readonly LaneReport[]) | null;
  /** Of this process's ingester, if it has one. */
  ingestion: (() => IngestionHealth) | null;
  clock?: Clock;
}

/** What stands in a scrape beside what was counted as it happened. One source fails without the others. */
export function houseGauges(options: HouseGaugesOptions): GaugeSource[] {
  const { lanes, ingestion, clock = systemClock } = options;
  const shared = [workersAlive(options), openDeadLetters(options), ...jobsOf(options)];
  const local = ingestion === null ? [] : [ingestionGauges(ingestion)];
  return [
    ...[...shared, ...local].map((source) => cachedSource(source, clock)),
    ...(lanes === null ? [] : [laneGauges(lanes)]),
  ];
}

const workersAlive = ({ heartbeats, workerStaleMs }: HouseGaugesOptions): GaugeSource => ({
  name: 'workers',
  read: async () => {
    const { alive } = await heartbeats.readHealth({ staleMs: workerStaleMs, limit: 1 });
    return [reading('workers_alive', alive, {})];
  },
});

const openDeadLetters = ({ deadLetters, deadLetterPipelines }: HouseGaugesOptions): GaugeSource => ({
  name: 'dead_letters',
  read: async () => {
    const counts = new Map(deadLetterPipelines.map((pipeline) => [pipeline, 0]));
    for (const { pipeline, count } of await deadLetters.countOpenByPipeline()) counts.set(pipeline, count);
    return [...counts].map(([pipeline, count]) => reading('dead_letters_open', count, { pipeline }));
  },
});

const jobsOf = ({ pipelines }: HouseGaugesOptions): GaugeSource[] =>
  pipelines.map(({ name, countJobs }) => ({
    name: `${name}_jobs`,
    read: async () =>
      Object.entries(await countJobs()).map(([state, count]) =>
        reading('jobs', count, { pipeline: name, state }),
      ),
  }));

const laneGauges = (lanes: () => readonly LaneReport[]): GaugeSource => ({
  name: 'lanes',
  read: () =>
    lanes().flatMap(({ pipeline, lanes: total, busy }) => [
      reading('worker_lanes', total, { pipeline }),
      reading('worker_lanes_busy', busy, { pipeline }),
    ]),
});

const ingestionGauges = (health: () => IngestionHealth): GaugeSource => ({
  name: 'ingestion',
  read: () => {
    const { role, healthy, lagLedgers, queue } = health();
    return [
      reading('ingestion_leading', Number(role === 'leading'), {}),
      reading('ingestion_healthy', Number(healthy), {}),
      ...(lagLedgers === null ? [] : [reading('ingestion_lag_ledgers', lagLedgers, {})]),
      reading('ingestion_pending_events', queue.pending, {}),
      reading('ingestion_processing_events', queue.processing, {}),
      reading('ingestion_failed_events', queue.failed, {}),
      reading('ingestion_oldest_pending_age_ms', queue.oldestEventAge, {}),
    ];
  },
});
