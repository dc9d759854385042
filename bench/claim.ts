import { performance } from 'node:perf_hooks';
import mongoose, { Schema, type Connection } from 'mongoose';
import { ensureIndexes } from '../src/platform/database/indexes';
import { nativeCollection } from '../src/platform/database/native-collection';
import { pickServer } from '../src/platform/database/pick-server';
import type { WorkerId } from '../src/platform/ids';
import type { QueueEnvelope } from '../src/queue/envelope';
import { applyQueueEnvelope } from '../src/queue/envelope-schema';
import { MongoWorkerQueue } from '../src/queue/mongo-worker-queue';
import { benchCommand } from './command';

const options = benchCommand(
  'claim',
  'What a claim costs as the backlog grows, and what many claimants at once get through, on the database that ' +
    'TEST_MONGODB_URI names or on the one that tests would use.',
)
  .parse()
  .opts<{ json: boolean }>();

const SIZES = [1_000, 100_000];
const CLAIMS = 400;
const CROWDS = [1, 8, 16, 32];
const CROWD_JOBS = 1_000;

type Parcel = { label: string };

const percentile = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
const rounded = (value: number): number => Math.round(value * 100) / 100;

async function backlog(
  connection: Connection,
  name: string,
  size: number,
): Promise<MongoWorkerQueue<Parcel>> {
  const model = connection.model(name, applyQueueEnvelope(new Schema({ label: String })));
  await ensureIndexes(model);
  const collection = nativeCollection<QueueEnvelope & Parcel>(model);
  const now = new Date();
  for (let start = 0; start < size; start += 5_000) {
    const jobs = Array.from({ length: Math.min(5_000, size - start) }, (_, i) => ({
      key: `job-${start + i}`,
      label: 'parcel',
      phase: 'ready' as const,
      order: now.getTime() + start + i,
      priority: 0,
      dueAt: now,
      attempts: 0,
      maxAttempts: 3,
      epoch: 0,
      lease: null,
      settled: null,
      errors: [],
      enqueuedAt: now,
      finishedAt: null,
      deadLetterPending: false,
      replays: 0,
    }));
    await collection.insertMany(jobs as never);
  }
  return new MongoWorkerQueue<Parcel>({ model, leaseMs: 600_000, maxAttempts: 3 });
}

async function claimCost(queue: MongoWorkerQueue<Parcel>): Promise<{ p50Ms: number; p95Ms: number }> {
  const times: number[] = [];
  for (let i = 0; i < CLAIMS; i++) {
    const started = performance.now();
    const { kind } = await queue.claim({ workerId: 'bench' as WorkerId, lane: 0 });
    times.push(performance.now() - started);
    if (kind === 'empty') throw new Error('the backlog ran out');
  }
  times.sort((a, b) => a - b);
  return { p50Ms: rounded(percentile(times, 0.5)), p95Ms: rounded(percentile(times, 0.95)) };
}

/** Claims and completes everything there is with `size` claimants. */
async function crowdRate(queue: MongoWorkerQueue<Parcel>, size: number): Promise<number> {
  const started = performance.now();
  let completed = 0;
  await Promise.all(
    Array.from({ length: size }, async (_, lane) => {
      while (completed < CROWD_JOBS) {
        const claim = await queue.claim({ workerId: 'bench' as WorkerId, lane });
        if (claim.kind === 'empty') continue;
        await queue.complete(claim.claimed.lease);
        completed++;
      }
    }),
  );
  return Math.round(CROWD_JOBS / ((performance.now() - started) / 1000));
}

async function main(): Promise<void> {
  const server = await pickServer({ environment: process.env, say: (line) => console.error(line) });
  const url = new URL(server.uri);
  url.pathname = `/bench_claim_${process.pid}`;
  const connection = await mongoose
    .createConnection(url.toString(), { autoIndex: false, maxPoolSize: 40 })
    .asPromise();
  try {
    console.error(`claiming on ${server.description}`);
    const costs = [];
    for (const size of SIZES) {
      const cost = { ready: size, ...(await claimCost(await backlog(connection, `Backlog${size}`, size))) };
      console.error(`${size} ready jobs: p50 ${cost.p50Ms} ms, p95 ${cost.p95Ms} ms a claim`);
      costs.push(cost);
    }
    const crowds = [];
    for (const claimants of CROWDS) {
      const jobsPerSecond = await crowdRate(
        await backlog(connection, `Crowd${claimants}`, CROWD_JOBS),
        claimants,
      );
      console.error(`${claimants} claimants: ${jobsPerSecond} jobs/s claimed and completed`);
      crowds.push({ claimants, jobsPerSecond });
    }
    if (options.json) {
      const growth = rounded((costs.at(-1)?.p50Ms ?? 0) / (costs[0]?.p50Ms ?? 1));
      console.log(JSON.stringify({ engine: server.engine, claims: costs, claimGrowth: growth, crowds }));
    }
  } finally {
    await connection.dropDatabase();
    await connection.close();
    await server.stop();
  }
}

void main();
