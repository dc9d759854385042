import { Keypair } from '@stellar/stellar-sdk';
import type { RequestHandler } from 'express';
import mongoose, { type Connection } from 'mongoose';
import { z } from 'zod';
import { makeWorkerId } from '../../src/platform/ids';
import { silentLogger, type Logger } from '../../src/platform/logger';
import type { Metrics } from '../../src/platform/metrics';
import { randomnessSettings } from '../../src/platform/settings/randomness.settings';
import type { StoredRandomnessJob } from '../../src/randomness/jobs/randomness-job.model';
import {
  createRandomnessPipeline,
  type RandomnessPipeline,
  type RandomnessPipelineDeps,
  type RandomnessPipelineSettings,
} from '../../src/randomness/randomness.pipeline';
import { type Signer, signerFromSecret } from '../../src/stellar/keys';
import type { JobHandler } from '../../src/worker/job-handler';
import { type RunResult, SoloRunner } from '../../src/worker/solo-runner';
import type { RandomnessJob } from '../../src/randomness/jobs/randomness-job.model';
import { openTestDatabase } from './database';
import { FakeRaffles } from './randomness-chain';
import { deadLetterRepository } from './worker-fixture';

export const fakeContractId = 'CA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUWDA';
export const oracleSecret = Keypair.fromRawEd25519Seed(Buffer.alloc(32, 7)).secret();
const networkPassphrase = 'Sorolane Simulated Network ; 2026';

/** Defaults of the specification, but for what `overrides` (texts of variables) says. */
export function randomnessSettingsFor(overrides: Record<string, string> = {}): RandomnessPipelineSettings {
  return {
    STELLAR_NETWORK_PASSPHRASE: networkPassphrase,
    ...z.object(randomnessSettings).parse({ RAFFLE_CONTRACT_ID: fakeContractId, ...overrides }),
  };
}

export async function openPipeline(
  connection: Connection,
  deps: Pick<RandomnessPipelineDeps, 'submitter' | 'reader' | 'feeEstimator' | 'latestLedger'> &
    Partial<RandomnessPipelineDeps>,
): Promise<RandomnessPipeline> {
  const pipeline = createRandomnessPipeline({
    connection,
    settings: randomnessSettingsFor(),
    signer: signerFromSecret(oracleSecret),
    deadLetters: await deadLetterRepository(connection),
    requireApiKey: letPass,
    logger: silentLogger(),
    // Nodes that agree with whatever one of them said.
    witnesses: { refusalsOf: () => Promise.resolve([21]) },
    ...deps,
  });
  if (pipeline === null) throw new Error('the pipeline is off');
  await pipeline.ensureIndexes();
  return pipeline;
}

const letPass: RequestHandler = (_request, _response, next) => next();

export interface RandomnessFixture {
  pipeline: RandomnessPipeline;
  chain: FakeRaffles;
  uri: string;
  connection: Connection;
  /** The pipeline's handler, as lanes run it. */
  handler: JobHandler<RandomnessJob>;
  submit(requestId: string, raffleId: number, more?: { prizeXlm?: number; priority?: 'high' }): Promise<void>;
  /** One try at that job, due or not. */
  tryOnce(requestId: string, signal?: AbortSignal): Promise<RunResult>;
  job(requestId: string): Promise<StoredRandomnessJob>;
  path(requestId: string): Promise<string[]>;
  /** Another process's pipeline on the same database and chain. */
  openAnother(overrides?: Record<string, string>): Promise<RandomnessPipeline>;
  close(): Promise<void>;
}

/** The real pipeline on a real database, with a chain in memory. */
export async function openRandomness(
  overrides: Record<string, string> = {},
  seams: { logger?: Logger; metrics?: Metrics; signer?: Signer } = {},
): Promise<RandomnessFixture> {
  const database = await openTestDatabase();
  const chain = new FakeRaffles();
  const connections: Connection[] = [];
  const open = (connection: Connection, settings: Record<string, string>): Promise<RandomnessPipeline> =>
    openPipeline(connection, {
      submitter: chain,
      reader: chain,
      feeEstimator: chain,
      latestLedger: () => Promise.resolve(chain.ledger),
      settings: randomnessSettingsFor(settings),
      ...seams,
    });
  const pipeline = await open(database.connection, overrides);
  const handler = pipeline.handler;
  const runner = new SoloRunner({
    source: {
      pipeline: pipeline.name,
      queue: pipeline.queue,
      handler,
      lanes: 1,
      retryPolicy: { baseMs: 60_000, multiplier: 2, capMs: 60_000 },
      deadLetters: pipeline.projector,
    },
    workerId: makeWorkerId(),
    logger: silentLogger(),
  });
  const job = async (requestId: string): Promise<StoredRandomnessJob> => {
    const found = await pipeline.rescue.find(requestId);
    if (found === null) throw new Error(`no job ${requestId}`);
    return found;
  };
  return {
    pipeline,
    chain,
    uri: database.uri,
    connection: database.connection,
    handler,
    submit: async (requestId, raffleId, more = {}) => {
      await pipeline.service.submit({ requestId, raffleId, source: 'api', ...more });
    },
    tryOnce: async (requestId, signal) =>
      runner.run((await job(requestId))._id.toHexString(), handler, signal),
    job,
    path: async (requestId) => (await job(requestId)).transitions.slice(1).map(({ toState }) => toState),
    openAnother: async (more = {}) => {
      const connection = await mongoose
        .createConnection(database.uri, { autoIndex: false, autoCreate: false })
        .asPromise();
      connections.push(connection);
      return open(connection, { ...overrides, ...more });
    },
    close: async () => {
      await Promise.all(connections.map((connection) => connection.close()));
      await database.close();
    },
  };
}
