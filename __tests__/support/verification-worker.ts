import type { Connection } from 'mongoose';
import { requireApiKey } from '../../src/http/api-key';
import { ensureIndexes } from '../../src/platform/database/indexes';
import { readConfig, type Config } from '../../src/platform/config';
import { silentLogger } from '../../src/platform/logger';
import { deadLetterModel } from '../../src/queue/dead-letter.model';
import { DeadLetterRepository } from '../../src/queue/dead-letters';
import type { SimnetFacts } from '../../src/simnet';
import { createStellarLayer, type StellarLayer } from '../../src/stellar/stellar-layer';
import {
  createVerificationPipeline,
  type VerificationPipeline,
  type VerificationPipelineDeps,
} from '../../src/verification/verification.pipeline';
import { workerHeartbeatModel } from '../../src/worker/worker-heartbeat.model';
import { WorkerHeartbeatRepository } from '../../src/worker/worker-heartbeats';
import { WorkerPool } from '../../src/worker/worker-pool';

/** The environment of a worker on a simulated network with quick ledgers. */
export const workerEnvironment = (facts: SimnetFacts, uri: string): Record<string, string> => ({
  MONGODB_URI: uri,
  API_KEYS: 'a-key-for-the-tests-only',
  NODE_ENV: 'test',
  PINATA_GATEWAY_URL: facts.ipfsUrl,
  ORACLE_CODE_MEASUREMENT_HASH: facts.teeHash,
  STELLAR_NETWORK_PASSPHRASE: facts.networkPassphrase,
  SOROBAN_RPC_URLS: facts.rpcUrls.join(','),
  STELLAR_ORACLE_SECRET_KEY: facts.oracleSecret,
  STELLAR_REGISTRY_CONTRACT_ID: facts.contracts.registry,
  STELLAR_ORACLE_CONTRACT_ID: facts.contracts.oracle,
  STELLAR_PROVENANCE_CONTRACT_ID: facts.contracts.provenance,
  STELLAR_CHANNEL_COUNT: '8',
  STELLAR_TX_POLL_INTERVAL_MS: '50',
});

export interface OpenWorkerOptions {
  connection: Connection;
  environment: Record<string, string>;
  lanes: number;
  leaseMs: number;
  /** Puts something between the pipeline and what it calls. */
  wrap?: (deps: VerificationPipelineDeps) => VerificationPipelineDeps;
}

export interface OpenWorker {
  pool: WorkerPool;
  pipeline: VerificationPipeline;
  stellar: StellarLayer;
}

/** What the composition makes of a worker, with leases short enough for a test to outlive one. The pool isn't started. */
export async function openWorker(options: OpenWorkerOptions): Promise<OpenWorker> {
  const { connection, environment, lanes, leaseMs, wrap = (deps) => deps } = options;
  const config = configOf(environment);
  const logger = silentLogger();
  const stellar = createStellarLayer({ settings: config, connection, logger });
  const deadLetterRecords = deadLetterModel(connection);
  const heartbeats = workerHeartbeatModel(connection);
  const pipeline = createVerificationPipeline(
    wrap({
      connection,
      settings: { ...config, VERIFICATION_WORKER_LEASE_MS: leaseMs, VERIFICATION_WORKER_CONCURRENCY: lanes },
      signer: stellar.oracle,
      submitter: stellar.submitter,
      reader: stellar.reader,
      deadLetters: new DeadLetterRepository(deadLetterRecords),
      requireApiKey: requireApiKey(config.API_KEYS),
      logger,
    }),
  );
  await Promise.all([
    ensureIndexes(deadLetterRecords),
    ensureIndexes(heartbeats),
    stellar.ensureIndexes(),
    pipeline.ensureIndexes(),
  ]);
  const pool = new WorkerPool({
    sources: pipeline.work,
    heartbeats: new WorkerHeartbeatRepository(heartbeats),
    logger,
    pollIntervalMs: 100,
    batchSize: 10,
    heartbeatIntervalMs: 60_000,
    drainTimeoutMs: 5000,
  });
  return { pool, pipeline, stellar };
}

function configOf(environment: Record<string, string>): Config {
  const result = readConfig(environment);
  if (result.kind === 'invalid') throw new Error(JSON.stringify(result.problems));
  return result.config;
}
