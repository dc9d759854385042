import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createConnection, type Connection } from 'mongoose';
import { silentLogger, type Logger } from '../../src/platform/logger';
import type { RandomnessPipeline } from '../../src/randomness/randomness.pipeline';
import type { StoredRandomnessJob } from '../../src/randomness/jobs/randomness-job.model';
import type { Simnet, SimnetOptions } from '../../src/simnet';
import { createStellarLayer, type StellarLayer } from '../../src/stellar/stellar-layer';
import type { TransactionSubmitter } from '../../src/stellar/submission';
import type { WorkerPool } from '../../src/worker/worker-pool';
import { openPipeline, randomnessSettingsFor } from './randomness-fixture';
import {
  openStellarFixture,
  stellarSettingsFor,
  type SimnetFacts,
  type StellarFixture,
} from './stellar-fixture';
import { heartbeatRepository, testPool, until } from './worker-fixture';

/** All that a process needs to work on the raffles of a simulated network. */
export interface NetworkWorkerOptions {
  uri: string;
  facts: SimnetFacts;
  /** Texts of variables: the randomness settings. */
  randomness?: Record<string, string>;
  stellar?: Record<string, string>;
}

export interface NetworkWorker {
  pipeline: RandomnessPipeline;
  stellar: StellarLayer;
  pool: WorkerPool;
  connection: Connection;
  /** Drains and closes. */
  close(): Promise<void>;
}

/** One worker process's parts, not started. Retries are quick. */
export async function openNetworkWorker(
  { uri, facts, randomness = {}, stellar: stellarOverrides = {} }: NetworkWorkerOptions,
  seams: { logger?: Logger; wrap?: (submitter: TransactionSubmitter) => TransactionSubmitter } = {},
): Promise<NetworkWorker> {
  const logger = seams.logger ?? silentLogger();
  const connection = await createConnection(uri, { autoIndex: false, autoCreate: false }).asPromise();
  const stellar = createStellarLayer({
    settings: stellarSettingsFor(facts, { STELLAR_CHANNEL_COUNT: '8', ...stellarOverrides }),
    connection,
    logger,
  });
  await stellar.ensureIndexes();
  const wrap = seams.wrap ?? ((submitter) => submitter);
  const pipeline = await openPipeline(connection, {
    submitter: wrap(stellar.submitter),
    reader: stellar.reader,
    feeEstimator: stellar.feeEstimator,
    witnesses: stellar.witnesses,
    latestLedger: (signal) => stellar.events.getLatestLedger(signal),
    signer: stellar.oracle,
    settings: randomnessSettingsFor({
      RAFFLE_CONTRACT_ID: facts.contracts.raffle,
      QUEUE_INITIAL_BACKOFF_MS: '20',
      QUEUE_MAX_BACKOFF_MS: '100',
      QUEUE_MAX_RETRIES: '20',
      ...randomness,
    }),
    logger,
  });
  const pool = testPool({
    sources: pipeline.work,
    heartbeats: await heartbeatRepository(connection),
    logger,
  });
  return {
    pipeline,
    stellar,
    pool,
    connection,
    close: async () => {
      await pool.stop();
      await stellar.close();
      await connection.close();
    },
  };
}

export interface RandomnessNetwork {
  simnet: Simnet;
  uri: string;
  openWorker(
    options?: Pick<NetworkWorkerOptions, 'randomness' | 'stellar'>,
    seams?: Parameters<typeof openNetworkWorker>[1],
  ): Promise<NetworkWorker>;
  /** A worker process of its own, killed on close if it still runs. */
  spawnWorker(options?: SpawnOptions): WorkerChild;
  close(): Promise<void>;
}

export interface SpawnOptions extends Pick<NetworkWorkerOptions, 'randomness' | 'stellar'> {
  /** Kills itself (SIGKILL) the first time it gets there. */
  dieAt?: DeathPoint;
}

export const deathPoints = ['generating', 'prepared', 'sent', 'confirmed'] as const;
export type DeathPoint = (typeof deathPoints)[number];

export interface WorkerChild {
  process: ChildProcess;
  /** Resolves with the signal that ended it. */
  died: Promise<string | null>;
  /** Starts its lanes, as soon as it can. Rejects when it dies before. */
  start(): Promise<void>;
}

export async function openRandomnessNetwork(options: SimnetOptions = {}): Promise<RandomnessNetwork> {
  const fixture: StellarFixture = await openStellarFixture(options);
  const { simnet, database } = fixture;
  const workers: NetworkWorker[] = [];
  const children: ChildProcess[] = [];
  return {
    simnet,
    uri: database.uri,
    openWorker: async (workerOptions = {}, seams = {}) => {
      const worker = await openNetworkWorker(
        { uri: database.uri, facts: simnet.facts(), ...workerOptions },
        seams,
      );
      workers.push(worker);
      return worker;
    },
    spawnWorker: ({ dieAt, ...workerOptions } = {}) => {
      const file = path.join(__dirname, 'randomness-child.ts');
      const argument = JSON.stringify({ uri: database.uri, facts: simnet.facts(), ...workerOptions, dieAt });
      const child = spawn(process.execPath, ['--import', 'tsx', file, argument], {
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      });
      children.push(child);
      const died = once(child, 'exit').then(([, signal]) => signal as string | null);
      const ready = Promise.race([
        once(child, 'message').then(() => undefined),
        died.then((signal) => Promise.reject(new Error(`the worker ended by ${signal} before it was ready`))),
      ]);
      ready.catch(() => undefined);
      const start = async (): Promise<void> => {
        await ready;
        child.send('start');
      };
      return { process: child, died, start };
    },
    close: async () => {
      for (const child of children) child.kill('SIGKILL');
      await Promise.all(workers.map((worker) => worker.close()));
      await fixture.close();
    },
  };
}

/** Waits for all of them to have the state; says which had another when the time is up. */
export async function untilAll(
  { rescue }: RandomnessPipeline,
  requestIds: readonly string[],
  state: StoredRandomnessJob['currentState'],
  withinMs = 30_000,
): Promise<StoredRandomnessJob[]> {
  let jobs: StoredRandomnessJob[] = [];
  try {
    await until(
      `${requestIds.length} jobs to be ${state}`,
      async () => {
        jobs = await Promise.all(
          requestIds.map(async (requestId) => {
            const job = await rescue.find(requestId);
            if (job === null) throw new Error(`no job ${requestId}`);
            return job;
          }),
        );
        return jobs.every(({ currentState }) => currentState === state);
      },
      withinMs,
    );
  } catch (error) {
    const others = jobs
      .filter(({ currentState }) => currentState !== state)
      .map(({ requestId, currentState, lastError }) => `${requestId} is ${currentState} (${lastError})`);
    throw new Error(`${(error as Error).message}: ${others.slice(0, 5).join('; ')}`, { cause: error });
  }
  return jobs;
}
