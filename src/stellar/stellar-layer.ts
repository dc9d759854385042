import type { Connection } from 'mongoose';
import { systemClock, type Clock } from '../platform/clock';
import { ensureIndexes, verifyIndexes } from '../platform/database/indexes';
import type { Logger } from '../platform/logger';
import { noMetrics, type Metrics } from '../platform/metrics';
import type { StellarSettings } from '../platform/settings/stellar.settings';
import { Simulator } from './contract-reader';
import { EventsClient } from './events-client';
import { deriveChannelSigners, signerFromSecret, type Signer } from './keys';
import { RpcPool } from './rpc/rpc-pool';
import { SorobanRpc } from './rpc/soroban-rpc';
import type { ContractReader, FeeEstimator, RefusalWitnesses, TransactionSubmitter } from './submission';
import { AttemptBuilder } from './submissions/attempt-builder';
import { AttemptDriver } from './submissions/attempt-driver';
import { AttemptTracker } from './submissions/attempt-tracker';
import { ChannelAccounts } from './submissions/channel-accounts';
import { ChannelPool } from './submissions/channel-pool';
import { ChannelRepository } from './submissions/channel-repository';
import { EnvelopeSender } from './submissions/envelope-sender';
import { SimulatedFees } from './submissions/fee-estimator';
import { FeePolicy } from './submissions/fee-policy';
import { MaintenanceRunner } from './submissions/maintenance-runner';
import { MongoTransactionSubmitter } from './submissions/mongo-transaction-submitter';
import { SubmissionRecovery } from './submissions/submission-recovery';
import { SubmissionRepository } from './submissions/submission-repository';
import { submissionModel } from './submissions/submission.model';

export interface StellarLayerOptions {
  settings: StellarSettings;
  connection: Connection;
  logger: Logger;
  metrics?: Metrics;
  clock?: Clock;
  /** How long a process may take from leasing a source account to storing what it signed. */
  buildLeaseMs?: number;
}

/** Everything the house knows of the chain. */
export interface StellarLayer {
  rpcPool: RpcPool;
  reader: ContractReader;
  submitter: TransactionSubmitter;
  feeEstimator: FeeEstimator;
  witnesses: RefusalWitnesses;
  events: EventsClient;
  recovery: SubmissionRecovery;
  /** The oracle account's key. */
  oracle: Signer;
  /** G… of the accounts whose sequence numbers carry transactions: channels, or the oracle account itself. */
  sourceAccounts: readonly string[];
  ensureIndexes(): Promise<void>;
  /** @throws PermanentError INDEX_MISSING */
  verifyIndexes(): Promise<void>;
  /** Stops the recovery and the probes; what was handed out must be at rest by then. */
  close(): Promise<void>;
}

/** A build is a handful of calls. One that takes longer can't commit any more; one that died holds its account no longer. */
const DEFAULT_BUILD_LEASE_MS = 45_000;
const STROOPS_PER_LUMEN = 10_000_000n;

export function createStellarLayer(options: StellarLayerOptions): StellarLayer {
  const { settings, connection, logger, metrics = noMetrics, clock = systemClock } = options;
  const networkPassphrase = settings.STELLAR_NETWORK_PASSPHRASE;
  const oracle = signerFromSecret(settings.STELLAR_ORACLE_SECRET_KEY);
  const rpcPool = new RpcPool({
    urls: settings.SOROBAN_RPC_URLS,
    networkPassphrase,
    timeoutMs: settings.STELLAR_RPC_TIMEOUT_MS,
    failureThreshold: settings.STELLAR_RPC_FAILURE_THRESHOLD,
    cooldownMs: settings.STELLAR_RPC_COOLDOWN_MS,
    maxLagLedgers: settings.STELLAR_RPC_MAX_LAG_LEDGERS,
    clock,
    logger,
    metrics,
  });
  const rpc = new SorobanRpc(rpcPool);
  const simulator = new Simulator({ rpc, actor: oracle.publicKey, networkPassphrase });
  const submissions = new SubmissionRepository(connection);
  const channelRepository = new ChannelRepository(connection);
  const poolOf = (signers: readonly Signer[]): ChannelPool =>
    new ChannelPool({
      signers,
      channels: channelRepository,
      submissions,
      buildLeaseMs: options.buildLeaseMs ?? DEFAULT_BUILD_LEASE_MS,
      nextLedger: (maxMs) => rpcPool.ledgers.hint(maxMs, closing.signal),
      settleLanded: (undecided) => tracker.followUsedUp(undecided, closing.signal),
      logger,
      clock,
    });

  const closing = new AbortController();
  const { signers, isDerived } = channelSigners(settings, oracle);
  const channels = poolOf(signers);
  const mainChannel = poolOf([oracle]);
  const tracker = new AttemptTracker({ rpc, submissions, channels, metrics, logger });
  const fees = feePolicy(settings, rpc, clock);
  const sender = new EnvelopeSender({
    rpc,
    submissions,
    tracker,
    payer: oracle,
    networkPassphrase,
    metrics,
    logger,
  });
  const driver = new AttemptDriver({
    submissions,
    tracker,
    sender,
    fees,
    ledgers: rpcPool.ledgers,
    payer: oracle.publicKey,
    pollIntervalMs: settings.STELLAR_TX_POLL_INTERVAL_MS,
    bumpAfterLedgers: settings.STELLAR_BUMP_AFTER_LEDGERS,
    clock,
    logger,
  });
  const builderOn = (sources: ChannelPool): AttemptBuilder =>
    new AttemptBuilder({
      rpc,
      submissions,
      channels: sources,
      tracker,
      fees,
      actor: oracle,
      networkPassphrase,
      validityMs: settings.STELLAR_TX_VALIDITY_MS,
      resourceFeeCap: BigInt(settings.STELLAR_RESOURCE_FEE_CAP_STROOPS),
      channelWaitMs: settings.STELLAR_CHANNEL_WAIT_MS,
      clock,
      metrics,
      logger,
    });
  const maintenanceOn = (builder: AttemptBuilder): MaintenanceRunner =>
    new MaintenanceRunner({
      submissions,
      builder,
      driver,
      confirmationTimeoutMs: settings.STELLAR_TX_CONFIRMATION_TIMEOUT_MS,
      clock,
    });
  const builder = builderOn(channels);
  const channelAccounts = new ChannelAccounts({
    rpc,
    maintenance: maintenanceOn(builderOn(mainChannel)),
    accounts: isDerived ? channels.accounts : [],
    balanceStroops: BigInt(settings.STELLAR_CHANNEL_BALANCE_XLM) * STROOPS_PER_LUMEN,
    clock,
    logger,
  });
  const recovery = new SubmissionRecovery({
    pool: rpcPool,
    submissions,
    channelPools: [channels, mainChannel],
    tracker,
    intervalMs: settings.STELLAR_RECOVERY_INTERVAL_MS,
    clock,
    logger,
  });
  return {
    rpcPool,
    reader: simulator,
    submitter: new MongoTransactionSubmitter({
      simulator,
      submissions,
      builder,
      sender,
      driver,
      maintenance: maintenanceOn(builder),
      ensureChannels: (signal) => channelAccounts.ensure(signal),
    }),
    feeEstimator: new SimulatedFees(simulator, fees),
    witnesses: simulator,
    events: new EventsClient(rpc),
    recovery,
    oracle,
    sourceAccounts: channels.accounts,
    ensureIndexes: () => ensureIndexes(submissionModel(connection)),
    verifyIndexes: () => verifyIndexes(submissionModel(connection)),
    close: async () => {
      closing.abort();
      await recovery.stop();
      rpcPool.close();
    },
  };
}

function channelSigners(
  settings: StellarSettings,
  oracle: Signer,
): { signers: Signer[]; isDerived: boolean } {
  const { STELLAR_CHANNEL_SECRETS: secrets, STELLAR_CHANNEL_COUNT: count } = settings;
  if (secrets.length > 0) return { signers: secrets.map(signerFromSecret), isDerived: false };
  if (count === 0) return { signers: [oracle], isDerived: false };
  const { STELLAR_ORACLE_SECRET_KEY: secret, STELLAR_NETWORK_PASSPHRASE: passphrase } = settings;
  return { signers: deriveChannelSigners(secret, passphrase, count), isDerived: true };
}

const feePolicy = (settings: StellarSettings, rpc: SorobanRpc, clock: Clock): FeePolicy =>
  new FeePolicy({
    rpc,
    classes: {
      standard: {
        percentile: settings.STELLAR_FEE_PERCENTILE,
        cap: BigInt(settings.STELLAR_FEE_CAP_STROOPS),
      },
      urgent: {
        percentile: settings.STELLAR_URGENT_FEE_PERCENTILE,
        cap: BigInt(settings.STELLAR_URGENT_FEE_CAP_STROOPS),
      },
    },
    margin: settings.STELLAR_FEE_MARGIN,
    fallback: BigInt(settings.STELLAR_FALLBACK_FEE_STROOPS),
    clock,
  });
