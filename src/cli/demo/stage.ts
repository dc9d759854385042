import { randomBytes } from 'node:crypto';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import mongoose from 'mongoose';
import { describePick, pickServer } from '../../platform/database/pick-server';
import type { PickedServer, Say } from '../../platform/database/picked-server';
import { startSimnet, type Simnet } from '../../simnet';
import type { DemoOptions } from './options';
import { onSameServer } from './own-database';
import { spikeEnvironment } from './spike';

/** All that the processes of the house need around them, started here where it is missing. */
export interface Stage {
  server: PickedServer;
  databaseUri: string;
  simnet: Simnet;
  apiKey: string;
  logFolder: string;
  /** Settings that every process of the demo gets; a role adds its own. */
  environment: Record<string, string>;
  close(): Promise<void>;
}

/** How long a faulty endpoint stays silent at most: long enough to be noticed, short beside a call's deadline. */
const FAULT_HOLD_MS = 1_000;

export async function setStage(options: DemoOptions, say: Say): Promise<Stage> {
  const server = await pickServer({ environment: process.env, say });
  describePick(server).forEach(say);
  const faults = {
    seed: options.seed,
    rate: options.faultRate,
    ipfsRate: options.faultRate,
    holdMs: FAULT_HOLD_MS,
  };
  const simnet = await startSimnet({ endpoints: 2, ledgerMs: options.ledgerMs, seed: options.seed, faults });
  say(
    `Network:  simulated, a ledger every ${options.ledgerMs} ms, 2 RPC endpoints: ${simnet.rpcUrls.join(', ')}`,
  );
  const logFolder = await mkdtemp(path.join(tmpdir(), 'sorolane-demo-'));
  say(`Logs:     ${logFolder}`);

  // A database of its own: the demo reads its figures from it, and a server that was configured may hold other work.
  const databaseUri = onSameServer(server.uri, `sorolane_demo_${randomBytes(4).toString('hex')}`);
  const apiKey = randomBytes(18).toString('base64url');
  return {
    server,
    databaseUri,
    simnet,
    apiKey,
    logFolder,
    environment: houseEnvironment(options, { databaseUri, simnet, apiKey }),
    close: async () => {
      await simnet.stop();
      // One that was started here goes with its server.
      if (server.engine === 'configured') await dropDatabase(databaseUri);
      await server.stop();
    },
  };
}

async function dropDatabase(uri: string): Promise<void> {
  const connection = await mongoose.createConnection(uri, { autoIndex: false }).asPromise();
  await connection.dropDatabase();
  await connection.close();
}

/**
 * The settings of the demo's processes. Times are those of a trial rather than of production: a killed worker's requests
 * are taken over after one lease, so leases are short; the checks between variables hold all the same.
 */
function houseEnvironment(
  { lanes, ledgerMs }: DemoOptions,
  { databaseUri, simnet, apiKey }: Pick<Stage, 'databaseUri' | 'simnet' | 'apiKey'>,
): Record<string, string> {
  // The network's clock counts whole seconds, so a transaction has to live for some of them however fast ledgers close.
  const validityMs = Math.max(8 * ledgerMs, 10_000);
  const confirmationMs = validityMs + Math.max(4 * ledgerMs, 4_000);
  return {
    NODE_ENV: 'development',
    LOG_LEVEL: 'info',
    MONGODB_URI: databaseUri,
    API_KEYS: apiKey,
    HOST: '127.0.0.1',
    STELLAR_NETWORK_PASSPHRASE: simnet.networkPassphrase,
    SOROBAN_RPC_URLS: simnet.rpcUrls.join(','),
    STELLAR_ORACLE_SECRET_KEY: simnet.oracleKeypair.secret(),
    STELLAR_CHANNEL_COUNT: '8',
    STELLAR_REGISTRY_CONTRACT_ID: simnet.contracts.registry,
    STELLAR_ORACLE_CONTRACT_ID: simnet.contracts.oracle,
    STELLAR_PROVENANCE_CONTRACT_ID: simnet.contracts.provenance,
    STELLAR_TX_VALIDITY_MS: String(validityMs),
    STELLAR_TX_CONFIRMATION_TIMEOUT_MS: String(confirmationMs),
    STELLAR_TX_POLL_INTERVAL_MS: String(Math.max(200, Math.round(ledgerMs / 2))),
    STELLAR_RPC_TIMEOUT_MS: '3000',
    STELLAR_RPC_COOLDOWN_MS: '1000',
    ORACLE_CODE_MEASUREMENT_HASH: simnet.teeHash,
    PINATA_GATEWAY_URL: simnet.ipfsUrl,
    SPV_FETCH_TIMEOUT_MS: '3000',
    MINT_RECHECK_MS: '1000',
    VERIFICATION_WORKER_CONCURRENCY: String(lanes),
    VERIFICATION_WORKER_POLL_INTERVAL_MS: '500',
    VERIFICATION_WORKER_RETRY_BASE_MS: '500',
    VERIFICATION_WORKER_MAX_ATTEMPTS: '12',
    VERIFICATION_WORKER_LEASE_MS: String(confirmationMs + 2_000),
    VERIFICATION_WORKER_HEARTBEAT_INTERVAL_MS: '1000',
    WORKER_HEARTBEAT_STALE_MS: '5000',
    WORKER_DRAIN_TIMEOUT_MS: '5000',
    RAFFLE_CONTRACT_ID: simnet.contracts.raffle,
    QUEUE_MAX_CONCURRENCY: String(lanes),
    QUEUE_HIGH_PRIORITY_RESERVED: lanes > 1 ? '1' : '0',
    QUEUE_MAX_RETRIES: '12',
    QUEUE_INITIAL_BACKOFF_MS: '500',
    QUEUE_GENERATION_TIMEOUT_MS: String(confirmationMs),
    QUEUE_SUBMISSION_TIMEOUT_MS: String(confirmationMs),
    QUEUE_CONFIRMATION_TIMEOUT_MS: String(confirmationMs),
    STELLAR_CHANNEL_WAIT_MS: String(confirmationMs / 2),
    QUEUE_LEASE_MS: String(confirmationMs + 2_000),
    ...spikeEnvironment(simnet),
    // The events come right after the start; a reader that begins at the newest ledger could begin behind them.
    EVENT_INGESTION_START_LEDGER: String(simnet.latestLedger),
    EVENT_INGESTION_POLL_INTERVAL_MS: '500',
    EVENT_INGESTION_PROCESS_INTERVAL_MS: '200',
  };
}
