import { type RequestHandler, Router } from 'express';
import type { Connection } from 'mongoose';
import type { z } from 'zod';
import type { EventHandler } from '../ingestion/event-handler';
import { type Clock, systemClock } from '../platform/clock';
import { PermanentError } from '../platform/errors';
import { makeWorkerId, type WorkerId } from '../platform/ids';
import type { Logger } from '../platform/logger';
import { type Metrics, noMetrics } from '../platform/metrics';
import type { randomnessSettings } from '../platform/settings/randomness.settings';
import type { DeadLetterRepository } from '../queue/dead-letters';
import type { RetryPolicy } from '../queue/retry-policy';
import { type Signer, signerFromSecret } from '../stellar/keys';
import type { ContractReader, TransactionSubmitter } from '../stellar/submission';
import type { JobHandler } from '../worker/job-handler';
import { type WorkSource, workSource } from '../worker/work-source';
import { AuditTrail } from './audit-trail';
import { Commitments } from './commitments.repository';
import { ProvideRandomnessContract } from './contracts/provide-randomness.contract';
import type { RaffleContract } from './contracts/raffle-contract';
import { ReceiveRandomnessContract } from './contracts/receive-randomness.contract';
import { DeadJobs } from './dead-jobs';
import { raffleCreatedHandler } from './events/raffle-created.handler';
import { raffleInstancesHandlers } from './events/raffle-instances.handler';
import { randomnessReceivedHandler } from './events/randomness-received.handler';
import { randomnessRequestedHandler } from './events/randomness-requested.handler';
import { GlobalSlots } from './global-slots';
import { JobStateManager } from './job-state-manager';
import { LeaseRunner } from './lease-runner';
import { sharedLedger } from './latest-ledger';
import { MetricsCache } from './metrics-cache';
import { OracleKeyring } from './oracle-keyring';
import { checkedThresholds, defaultPriorityThresholds, type PriorityThresholds } from './priority';
import { LocalSlots, type ProcessingSlots } from './processing-slots';
import { type QueueConfig, queueHealthRoutes } from './queue-health.routes';
import type { QueueMetrics } from './queue-metrics';
import { RandomnessDeadLetters } from './randomness-dead-letters';
import { RandomnessGenerator } from './randomness-generator';
import type { RandomnessJob } from './randomness-job.model';
import { RandomnessJobs } from './randomness-jobs.repository';
import type { MessageVersion } from './randomness-message';
import { RandomnessProcessorService } from './randomness-processor.service';
import { RandomnessQueue } from './randomness-queue';
import { randomnessHandler } from './randomness.handler';
import { randomnessRoutes } from './randomness.routes';
import { RandomnessService } from './randomness.service';
import { RescueService } from './rescue.service';
import { startUpkeep } from './upkeep';

/** Under the names of their variables, so that the parsed configuration is one. */
export type RandomnessPipelineSettings = Readonly<z.infer<z.ZodObject<typeof randomnessSettings>>> & {
  readonly STELLAR_NETWORK_PASSPHRASE: string;
};

export interface RandomnessPipelineDeps {
  connection: Connection;
  settings: RandomnessPipelineSettings;
  /** The oracle account's key: its transactions deliver, and it proves randomness unless ORACLE_SECRET_KEY is another. */
  signer: Signer;
  submitter: TransactionSubmitter;
  reader: ContractReader;
  /** Sequence of the newest closed ledger. */
  latestLedger: (signal: AbortSignal) => Promise<number>;
  deadLetters: DeadLetterRepository;
  requireApiKey: RequestHandler;
  logger: Logger;
  metrics?: Metrics;
  clock?: Clock;
  /** Names this process where it holds slots or works outside the pool. */
  workerId?: WorkerId;
  /** A hint that a request came in, for idle lanes of this process. */
  onRequest?: () => void;
}

export interface RandomnessPipeline {
  readonly name: typeof PIPELINE;
  readonly basePath: string;
  /** Holds `/api/v1/randomness`, `/api/v1/queue` and `/queue`. */
  readonly router: Router;
  readonly service: RandomnessService;
  readonly states: JobStateManager;
  readonly queue: RandomnessQueue;
  /** Replays dead jobs. */
  readonly projector: RandomnessDeadLetters;
  readonly rescue: RescueService;
  readonly audit: AuditTrail;
  readonly contract: RaffleContract;
  /** What a lane does with a job. */
  readonly handler: JobHandler<RandomnessJob>;
  readonly work: readonly WorkSource[];
  readonly eventHandlers: readonly EventHandler[];
  ensureIndexes(): Promise<void>;
  /** Jobs by state. */
  stats(): Promise<QueueMetrics>;
  /** What runs beside the lanes in a worker process. @returns how to stop it. */
  startBackground(): () => Promise<void>;
}

const PIPELINE = 'randomness';
const DAY_MS = 86_400_000;
const METRICS_FRESH_MS = 1_000;
const METRICS_STALE_MS = 15_000;

/** The whole pipeline, from the parts of the floors below. Null without a raffle contract: then it is off. */
export function createRandomnessPipeline(deps: RandomnessPipelineDeps): RandomnessPipeline | null {
  const { connection, settings, submitter, reader, deadLetters, requireApiKey } = deps;
  const contractId = settings.RAFFLE_CONTRACT_ID;
  const factoryId = settings.RAFFLE_FACTORY_CONTRACT_ID;
  if (contractId === undefined) return null;
  const logger = deps.logger.child({ pipeline: PIPELINE });
  const clock = deps.clock ?? systemClock;
  const metrics = deps.metrics ?? noMetrics;
  const latestLedger = sharedLedger(deps.latestLedger, clock);
  const workerId = deps.workerId ?? makeWorkerId();
  const queueConfig = queueConfigOf(settings);
  const retryPolicy: RetryPolicy = {
    baseMs: settings.QUEUE_INITIAL_BACKOFF_MS,
    multiplier: settings.QUEUE_BACKOFF_MULTIPLIER,
    capMs: settings.QUEUE_MAX_BACKOFF_MS,
  };

  const jobs = new RandomnessJobs(connection, settings.QUEUE_JOB_RETENTION_MS);
  const { slots, globalSlots } = slotsOf(deps, workerId, logger);
  const queue = new RandomnessQueue(
    { model: jobs.model, leaseMs: settings.QUEUE_LEASE_MS, maxAttempts: settings.QUEUE_MAX_RETRIES, clock },
    slots,
  );
  const metricsCache = new MetricsCache({
    count: () => jobs.countByState(),
    freshMs: METRICS_FRESH_MS,
    staleMs: METRICS_STALE_MS,
    clock,
    logger,
  });
  const states = new JobStateManager({
    queue,
    jobs,
    slots,
    metricsCache,
    retryPolicy,
    maxRetries: settings.QUEUE_MAX_RETRIES,
    clock,
    logger,
    metrics,
  });
  const audit = new AuditTrail(connection, clock);
  const keyring = keyringOf(deps, clock, logger);
  const generator = new RandomnessGenerator({
    keyring,
    networkPassphrase: settings.STELLAR_NETWORK_PASSPHRASE,
    messageVersion: Number(settings.ORACLE_MESSAGE_VERSION) as MessageVersion,
    vrfThresholdXlm: settings.VRF_THRESHOLD_XLM,
  });
  const byNumber =
    settings.RAFFLE_CONTRACT_INTERFACE === 'receive_randomness'
      ? new ReceiveRandomnessContract(reader)
      : null;
  const contract: RaffleContract = byNumber ?? new ProvideRandomnessContract(reader);
  const commitments = new Commitments(connection);
  const processor = new RandomnessProcessorService({
    states,
    slots,
    generator,
    contract,
    commitments,
    submitter,
    audit,
    latestLedger,
    timeouts: {
      generationMs: settings.QUEUE_GENERATION_TIMEOUT_MS,
      submissionMs: settings.QUEUE_SUBMISSION_TIMEOUT_MS,
      confirmationMs: settings.QUEUE_CONFIRMATION_TIMEOUT_MS,
    },
    requestTimeoutLedgers: settings.ORACLE_REQUEST_TIMEOUT_LEDGERS,
    highPrioritySlaMs: settings.ORACLE_HIGH_PRIORITY_SLA_MS,
    clock,
    metrics,
  });
  const handler = randomnessHandler(processor);
  const service = new RandomnessService({
    states,
    jobs,
    generator,
    contract,
    contractId,
    oracleKey: () => keyring.currentPublicKey,
    thresholds: thresholdsOf(settings, logger),
    wake: deps.onRequest ?? (() => undefined),
    clock,
  });
  const deadJobs = new DeadJobs({ jobs, audit, clock, logger, metrics });
  const projector = new RandomnessDeadLetters({
    pipeline: PIPELINE,
    queue,
    records: deadLetters,
    describe: (job) => deadJobs.describe(job),
    onDead: (job) => deadJobs.onDead(job),
    logger,
  });
  const runner = new LeaseRunner({ queue, retryPolicy, workerId, logger });
  // One contract is told by configuration; where each raffle is a contract, all that are followed count.
  const contracts = contract.interfaceName === 'receive_randomness' ? { contracts: [contractId] } : {};

  return {
    name: PIPELINE,
    basePath: '/',
    router: routerOf({
      randomness: randomnessRoutes({ service, generator, keyring, audit, requireApiKey }),
      queue: () => queueHealthRoutes({ states, metricsCache, config: queueConfig, clock }),
    }),
    service,
    states,
    queue,
    projector,
    rescue: new RescueService({
      jobs,
      states,
      service,
      deadLetters: projector,
      runner,
      handler,
      generator,
      contract,
      contractId,
      audit,
      latestLedger,
      clock,
      logger,
    }),
    audit,
    contract,
    handler,
    work: [
      workSource<RandomnessJob>({
        pipeline: PIPELINE,
        queue,
        handler,
        lanes: settings.QUEUE_MAX_CONCURRENCY,
        retryPolicy,
        deadLetters: projector,
      }),
    ],
    eventHandlers: [
      randomnessRequestedHandler({
        service,
        topic: settings.RANDOMNESS_REQUESTED_TOPIC,
        ownAddresses: () => [deps.signer.publicKey, ...keyring.activePublicKeys],
        ...contracts,
      }),
      randomnessReceivedHandler({
        service,
        jobs,
        runner,
        processor,
        topic: settings.RANDOMNESS_RECEIVED_TOPIC,
        clock,
        ...contracts,
      }),
      ...(byNumber === null
        ? raffleInstancesHandlers({
            topic: settings.RAFFLE_CREATED_TOPIC,
            contracts: [contractId, ...(factoryId === undefined ? [] : [factoryId])],
          })
        : []),
      ...(byNumber === null || settings.COMMIT_REVEAL_THRESHOLD_XLM === 0
        ? []
        : [
            raffleCreatedHandler({
              commitments,
              contract: byNumber,
              submitter,
              topic: settings.RAFFLE_CREATED_TOPIC,
              contracts: [contractId],
              thresholdXlm: settings.COMMIT_REVEAL_THRESHOLD_XLM,
              confirmationTimeoutMs: settings.QUEUE_CONFIRMATION_TIMEOUT_MS,
              clock,
            }),
          ]),
    ],
    ensureIndexes: async () => {
      await Promise.all([
        jobs.ensureIndexes(),
        audit.ensureIndexes(),
        commitments.ensureIndexes(),
        globalSlots?.ensureSlots(),
      ]);
    },
    stats: () => states.getMetrics(),
    startBackground: () => startUpkeep({ keyring, contract, contractId, metricsCache, globalSlots, logger }),
  };
}

function queueConfigOf(settings: RandomnessPipelineSettings): QueueConfig {
  return {
    maxRetries: settings.QUEUE_MAX_RETRIES,
    initialBackoffMs: settings.QUEUE_INITIAL_BACKOFF_MS,
    backoffMultiplier: settings.QUEUE_BACKOFF_MULTIPLIER,
    maxBackoffMs: settings.QUEUE_MAX_BACKOFF_MS,
    confirmationTimeoutMs: settings.QUEUE_CONFIRMATION_TIMEOUT_MS,
    maxConcurrency: settings.QUEUE_MAX_CONCURRENCY,
    generationTimeoutMs: settings.QUEUE_GENERATION_TIMEOUT_MS,
    submissionTimeoutMs: settings.QUEUE_SUBMISSION_TIMEOUT_MS,
  };
}

function slotsOf(
  { connection, settings }: RandomnessPipelineDeps,
  workerId: WorkerId,
  logger: Logger,
): { slots: ProcessingSlots; globalSlots: GlobalSlots | null } {
  const reservedForUrgent = settings.QUEUE_HIGH_PRIORITY_RESERVED;
  const local = new LocalSlots({ max: settings.QUEUE_MAX_CONCURRENCY, reservedForUrgent });
  const max = settings.QUEUE_GLOBAL_CONCURRENCY;
  if (max === 0) return { slots: local, globalSlots: null };
  const leaseMs = settings.QUEUE_LEASE_MS;
  const globalSlots = new GlobalSlots({
    connection,
    local,
    limit: { max, reservedForUrgent },
    workerId,
    leaseMs,
    logger,
  });
  return { slots: globalSlots, globalSlots };
}

function keyringOf(
  { settings, signer }: RandomnessPipelineDeps,
  clock: Clock,
  logger: Logger,
): OracleKeyring {
  const { ORACLE_SECRET_KEY, ORACLE_PREVIOUS_SECRET_KEY, ORACLE_KEY_ROTATED_AT, ORACLE_KEY_CREATED_AT } =
    settings;
  if ((ORACLE_PREVIOUS_SECRET_KEY === undefined) !== (ORACLE_KEY_ROTATED_AT === undefined)) {
    throw new PermanentError(
      'INVALID_CONFIGURATION',
      'ORACLE_PREVIOUS_SECRET_KEY and ORACLE_KEY_ROTATED_AT go together: the grace period runs from the rotation',
    );
  }
  return new OracleKeyring({
    current: ORACLE_SECRET_KEY === undefined ? signer : signerFromSecret(ORACLE_SECRET_KEY),
    graceMs: settings.ORACLE_KEY_GRACE_MS,
    maxAgeMs: settings.ORACLE_KEY_MAX_AGE_DAYS * DAY_MS,
    clock,
    logger,
    ...(ORACLE_PREVIOUS_SECRET_KEY === undefined || ORACLE_KEY_ROTATED_AT === undefined
      ? {}
      : {
          previous: {
            signer: signerFromSecret(ORACLE_PREVIOUS_SECRET_KEY),
            rotatedAtMs: Date.parse(ORACLE_KEY_ROTATED_AT),
          },
        }),
    ...(ORACLE_KEY_CREATED_AT === undefined ? {} : { createdAtMs: Date.parse(ORACLE_KEY_CREATED_AT) }),
  });
}

function thresholdsOf(settings: RandomnessPipelineSettings, logger: Logger): PriorityThresholds {
  const configured = {
    highValueXlm: settings.ORACLE_HIGH_VALUE_THRESHOLD_XLM,
    mediumValueXlm: settings.ORACLE_MED_VALUE_THRESHOLD_XLM,
  };
  const checked = checkedThresholds(configured);
  if (checked === null) {
    logger.warn(
      { configured, used: defaultPriorityThresholds },
      'ORACLE_MED_VALUE_THRESHOLD_XLM is not below ORACLE_HIGH_VALUE_THRESHOLD_XLM; the defaults of both are used',
    );
  }
  return checked ?? defaultPriorityThresholds;
}

function routerOf({ randomness, queue }: { randomness: Router; queue: () => Router }): Router {
  const router = Router();
  router.use('/api/v1/randomness', randomness);
  router.use('/api/v1/queue', queue());
  router.use('/queue', queue());
  return router;
}
