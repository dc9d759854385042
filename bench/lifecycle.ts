import { cpuUsage } from 'node:process';
import { performance } from 'node:perf_hooks';
import { setImmediate as nextTick } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import mongoose, { type Connection } from 'mongoose';
import { systemClock } from '../src/platform/clock';
import { nativeCollection } from '../src/platform/database/native-collection';
import type { WorkerId } from '../src/platform/ids';
import { silentLogger } from '../src/platform/logger';
import { noMetrics } from '../src/platform/metrics';
import { JobStateManager, type HeldJob } from '../src/randomness/jobs/job-state-manager';
import { MetricsCache } from '../src/randomness/jobs/metrics-cache';
import { LocalSlots } from '../src/randomness/processing/processing-slots';
import type { StoredRandomnessJob } from '../src/randomness/jobs/randomness-job.model';
import { RandomnessJobs } from '../src/randomness/jobs/randomness-jobs.repository';
import { jobStates } from '../src/randomness/jobs/randomness-lifecycle';
import { RandomnessQueue } from '../src/randomness/jobs/randomness-queue';
import { wholeNumber } from '../src/platform/command-line';
import { benchCommand } from './command';
import { openBenchServer } from './lifecycle/database';
import { jobInput, storedJob } from './lifecycle/jobs';

const options = benchCommand(
  'lifecycle',
  'What the randomness lifecycle costs, on the database that TEST_MONGODB_URI names or on the one that tests would use. ' +
    'Exit code 1 when a mark is missed.',
)
  .option('--jobs <n>', 'jobs that are there when metrics are read', wholeNumber(1, 10_000_000), 1_000_000)
  .parse()
  .opts<{ jobs: number; json: boolean }>();

const TRANSITIONS = 20_000;
const STORED_TRANSITIONS = 300;
const READS = 1_000;
const QUEUED = 1_000;
const MIB = 1_048_576;
const marks = { transitionCpuMs: 1, getMetricsP99Ms: 10 };

const rounded = (value: number): number => Math.round(value * 1000) / 1000;
const percentile = (times: readonly number[], share: number): number => {
  const sorted = [...times].sort((a, b) => a - b);
  return rounded(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN);
};

interface Parts {
  jobs: RandomnessJobs;
  queue: RandomnessQueue;
  metricsCache: MetricsCache;
  states: JobStateManager;
}

function partsOn(connection: Connection): Parts {
  const logger = silentLogger();
  const clock = systemClock;
  const jobs = new RandomnessJobs(connection, 3_600_000);
  const slots = new LocalSlots({ max: 10, reservedForUrgent: 0 });
  const queue = new RandomnessQueue({ model: jobs.model, leaseMs: 600_000, maxAttempts: 5 }, slots);
  const metricsCache = new MetricsCache({
    count: () => jobs.countByState(),
    freshMs: 1_000,
    clock,
    logger,
  });
  const retryPolicy = { baseMs: 2_000, multiplier: 2, capMs: 60_000 };
  const states = new JobStateManager({
    ...{ queue, jobs, slots, metricsCache, retryPolicy, maxRetries: 5, clock, logger },
    metrics: noMetrics,
  });
  return { jobs, queue, metricsCache, states };
}

/** Our own CPU: the queue answers from memory. */
async function transitionCpu({ jobs, metricsCache }: Parts): Promise<number> {
  const recorded = Promise.resolve({ kind: 'recorded' as const });
  const states = new JobStateManager({
    queue: { record: () => recorded } as unknown as RandomnessQueue,
    jobs,
    slots: new LocalSlots({ max: 10, reservedForUrgent: 0 }),
    metricsCache,
    retryPolicy: { baseMs: 2_000, multiplier: 2, capMs: 60_000 },
    maxRetries: 5,
    clock: systemClock,
    logger: silentLogger(),
    metrics: noMetrics,
  });
  const held = {
    job: storedJob(0, 'retrying', new Date()),
    lease: { attempt: 1, maxAttempts: 5 },
  } as unknown as HeldJob;
  const started = cpuUsage();
  for (let done = 0; done < TRANSITIONS; done += 2) {
    await states.transitionState(held, 'generating', 'Next attempt');
    await states.transitionState(held, 'retrying', 'Generation error', 'no answer');
  }
  const { user, system } = cpuUsage(started);
  return rounded((user + system) / 1000 / TRANSITIONS);
}

/** With the write, and with the round trip to this database. */
async function storedTransitions({ queue, states }: Parts): Promise<number[]> {
  const claim = await queue.claim({ workerId: 'bench' as WorkerId, lane: 0 });
  if (claim.kind === 'empty') throw new Error('there is no job to move');
  const held: HeldJob = claim.claimed;
  await states.transitionState(held, 'generating');
  const times: number[] = [];
  for (let done = 0; done < STORED_TRANSITIONS; done++) {
    const started = performance.now();
    await states.transitionState(held, done % 2 === 0 ? 'retrying' : 'generating');
    times.push(performance.now() - started);
  }
  return times;
}

/** All states are there, most jobs are over. */
async function fill({ jobs }: Parts, count: number): Promise<void> {
  const collection = nativeCollection<StoredRandomnessJob>(jobs.model);
  const now = new Date();
  const batch = 5_000;
  for (let start = 0; start < count; start += batch) {
    const documents = Array.from({ length: Math.min(batch, count - start) }, (_, offset) => {
      const index = start + offset;
      const state = index % 10 === 0 ? jobStates[(index / 10) % jobStates.length] : 'confirmed';
      return storedJob(index, state ?? 'confirmed', now);
    });
    await collection.insertMany(documents, { ordered: false });
    if (start % 100_000 === 0) console.error(`  ${start} of ${count} jobs are there`);
  }
}

/** Asks while the figures age and are counted anew behind the scenes. */
async function readMetrics({ states }: Parts): Promise<number[]> {
  const times: number[] = [];
  for (let read = 0; read < READS; read++) {
    const started = performance.now();
    await states.getMetrics();
    times.push(performance.now() - started);
    if (read % 20 === 0) await new Promise((resolve) => setTimeout(resolve, 60));
    else await nextTick();
  }
  return times;
}

/** Heap that 1,000 queued jobs take in a worker's process. */
async function queuedMemory({ states }: Parts): Promise<number> {
  const enqueue = async (prefix: string): Promise<void> => {
    for (let start = 0; start < QUEUED; start += 50) {
      await Promise.all(
        Array.from({ length: 50 }, (_, offset) =>
          states.initializeJob(jobInput(`${prefix}-${start + offset}`, start + offset, new Date())),
        ),
      );
    }
  };
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const heap = (): number => {
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  // The first thousand fills the driver's pools and the compiler's caches; they are no jobs.
  await enqueue('warm-up');
  const before = heap();
  await enqueue('queued');
  return rounded(Math.max(0, heap() - before) / MIB);
}

async function main(): Promise<void> {
  const count = options.jobs;
  const server = await openBenchServer();
  const url = new URL(server.uri);
  url.pathname = `/bench_lifecycle_${process.pid}`;
  const connection = await mongoose
    .createConnection(url.toString(), { autoIndex: false, autoCreate: false })
    .asPromise();
  try {
    const parts = partsOn(connection);
    await parts.jobs.ensureIndexes();
    const transitionCpuMs = await transitionCpu(parts);
    const queuedMib = await queuedMemory(parts);
    const moved = await storedTransitions(parts);
    await fill(parts, count);
    const coldStarted = performance.now();
    await parts.metricsCache.refresh();
    const coldCountMs = rounded(performance.now() - coldStarted);
    const reads = await readMetrics(parts);
    const figures = {
      engine: server.engine,
      jobs: count,
      transitionCpuMs,
      transitionStoredMs: { p50: percentile(moved, 0.5), p95: percentile(moved, 0.95) },
      getMetricsMs: { p50: percentile(reads, 0.5), p99: percentile(reads, 0.99), max: percentile(reads, 1) },
      firstCountMs: coldCountMs,
      heapPerThousandQueuedMib: queuedMib,
    };
    report(figures);
    if (options.json) console.log(JSON.stringify(figures));
    const met = transitionCpuMs < marks.transitionCpuMs && figures.getMetricsMs.p99 < marks.getMetricsP99Ms;
    process.exitCode = met ? 0 : 1;
  } finally {
    await connection.dropDatabase();
    await connection.close();
    await server.stop();
  }
}

function report(figures: Record<string, unknown>): void {
  console.error('Randomness lifecycle');
  for (const [name, value] of Object.entries(figures))
    console.error(`  ${name.padEnd(26)} ${JSON.stringify(value)}`);
  console.error(
    `  marks: own CPU of a transition < ${marks.transitionCpuMs} ms, getMetrics p99 < ${marks.getMetricsP99Ms} ms`,
  );
}

void main();
