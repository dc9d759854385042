import { type RequestHandler, Router } from 'express';
import type { Connection } from 'mongoose';
import type { EventHandler } from '../ingestion/event-handler';
import { type Clock, systemClock } from '../platform/clock';
import { makeWorkerId, type WorkerId } from '../platform/ids';
import type { Logger } from '../platform/logger';
import { type Metrics, noMetrics } from '../platform/metrics';
import type { DeadLetterRepository } from '../queue/dead-letters';
import type { Signer } from '../stellar/keys';
import type {
  ContractReader,
  FeeEstimator,
  RefusalWitnesses,
  TransactionSubmitter,
} from '../stellar/submission';
import type { JobHandler } from '../worker/job-handler';
import { SoloRunner } from '../worker/solo-runner';
import { type WorkSource, workSource } from '../worker/work-source';
import { AuditTrail } from './audit/audit-trail';
import { Commitments } from './seeds/commitments.repository';
import {
  keyringOf,
  messageVersionOf,
  queueConfigOf,
  type RandomnessSettings,
  retryPolicyOf,
  servedBy,
  slotsOf,
  thresholdsOf,
} from './configured-parts';
import { ProvideRandomnessContract } from './contracts/provide-randomness.contract';
import type { RaffleContract } from './contracts/raffle-contract';
import { ReceiveRandomnessContract } from './contracts/receive-randomness.contract';
import { DeadJobs } from './processing/dead-jobs';
import { DeliveryOutcomes } from './processing/delivery-outcomes';
import { DeliveryRequests } from './processing/delivery-requests';
import { randomnessEventHandlers } from './events/randomness-event-handlers';
import { Endings } from './processing/job-endings';
import { JobStateManager } from './jobs/job-state-manager';
import { sharedLedger } from './processing/latest-ledger';
import { MetricsCache } from './jobs/metrics-cache';
import { queueHealthRoutes } from './http/queue-health.routes';
import type { JobCounts } from './jobs/queue-metrics';
import { RaffleCheck } from './processing/raffle-check';
import { RandomnessDeadLetters } from './jobs/randomness-dead-letters';
import { RandomnessGenerator } from './seeds/randomness-generator';
import type { RandomnessJob } from './jobs/randomness-job.model';
import { RandomnessJobs } from './jobs/randomness-jobs.repository';
import { RandomnessProcessorService } from './processing/randomness-processor.service';
import { RandomnessQueue } from './jobs/randomness-queue';
import { randomnessHandler } from './processing/randomness.handler';
import { randomnessRoutes } from './http/randomness.routes';
import { RandomnessService } from './randomness.service';
import { createRescue, type Rescue } from './rescue/create-rescue';
import { startUpkeep } from './upkeep';

export type RandomnessPipelineSettings = RandomnessSettings & {
  readonly STELLAR_NETWORK_PASSPHRASE: string;
};

export interface RandomnessPipelineDeps {
  connection: Connection;
  settings: RandomnessPipelineSettings;
  /** The oracle account's key: its transactions deliver, and it proves randomness unless ORACLE_SECRET_KEY is another. */
  signer: Signer;
  submitter: TransactionSubmitter;
  reader: ContractReader;
  feeEstimator: FeeEstimator;
  /** Asks every node about a refusal that would change a seed. */
  witnesses: RefusalWitnesses;
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

export interface RandomnessPipeline extends Rescue {
  readonly name: typeof PIPELINE;
  readonly basePath: string;
  /** Holds `/api/v1/randomness`, `/api/v1/queue` and `/queue`. */
  readonly router: Router;
  readonly service: RandomnessService;
  readonly states: JobStateManager;
  readonly queue: RandomnessQueue;
  /** Replays dead jobs. */
  readonly projector: RandomnessDeadLetters;
  readonly audit: AuditTrail;
  readonly contract: RaffleContract;
  /** What a lane does with a job. */
  readonly handler: JobHandler<RandomnessJob>;
  readonly work: readonly WorkSource[];
  readonly eventHandlers: readonly EventHandler[];
  ensureIndexes(): Promise<void>;
  /** Jobs by state, counted in the background. */
  jobCounts(): Promise<JobCounts>;
  /** What runs beside the lanes in a worker process. @returns how to stop it. */
  startBackground(): () => Promise<void>;
}

const PIPELINE = 'randomness';
const METRICS_FRESH_MS = 1_000;

/** The whole pipeline, from the parts of the floors below. Null without a raffle contract or factory: then it is off. */
export function createRandomnessPipeline(deps: RandomnessPipelineDeps): RandomnessPipeline | null {
  const { connection, settings, submitter, reader, deadLetters, requireApiKey } = deps;
  const served = servedBy(settings);
  if (served === null) return null;
  const { contractId } = served;
  const logger = deps.logger.child({ pipeline: PIPELINE });
  const clock = deps.clock ?? systemClock;
  const metrics = deps.metrics ?? noMetrics;
  const latestLedger = sharedLedger(deps.latestLedger, clock);
  const workerId = deps.workerId ?? makeWorkerId();
  const queueConfig = queueConfigOf(settings);
  const retryPolicy = retryPolicyOf(settings);

  const jobs = new RandomnessJobs(connection, settings.QUEUE_JOB_RETENTION_MS);
  const { slots, globalSlots } = slotsOf(settings, { connection, workerId, clock, logger });
  const queue = new RandomnessQueue(
    {
      model: jobs.model,
      leaseMs: settings.QUEUE_LEASE_MS,
      maxAttempts: settings.QUEUE_MAX_RETRIES,
      isEpochFromClock: true,
      clock,
    },
    slots,
  );
  const metricsCache = new MetricsCache({
    count: () => jobs.countByState(),
    freshMs: METRICS_FRESH_MS,
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
  const keyring = keyringOf(settings, { accountSigner: deps.signer, clock, logger });
  const generator = new RandomnessGenerator({
    keyring,
    networkPassphrase: settings.STELLAR_NETWORK_PASSPHRASE,
    messageVersion: messageVersionOf(settings),
    vrfThresholdXlm: settings.VRF_THRESHOLD_XLM,
  });
  const contract =
    settings.RAFFLE_CONTRACT_INTERFACE === 'receive_randomness'
      ? new ReceiveRandomnessContract(reader)
      : new ProvideRandomnessContract(reader);
  const commitments = new Commitments(connection);
  const highPrioritySlaMs = settings.ORACLE_HIGH_PRIORITY_SLA_MS;
  const endings = new Endings({ states, audit, highPrioritySlaMs, clock, logger, metrics });
  const check = new RaffleCheck({
    contract,
    generator,
    commitments,
    audit,
    endings,
    latestLedger,
    requestTimeoutLedgers: settings.ORACLE_REQUEST_TIMEOUT_LEDGERS,
    clock,
  });
  const requests = new DeliveryRequests({ contract, generator });
  const processor = new RandomnessProcessorService({
    states,
    slots,
    generator,
    contract,
    check,
    requests,
    outcomes: new DeliveryOutcomes({
      contract,
      generator,
      requests,
      witnesses: deps.witnesses,
      endings,
      check,
    }),
    endings,
    submitter,
    timeouts: {
      generationMs: settings.QUEUE_GENERATION_TIMEOUT_MS,
      submissionMs: settings.QUEUE_SUBMISSION_TIMEOUT_MS,
      confirmationMs: settings.QUEUE_CONFIRMATION_TIMEOUT_MS,
    },
  });
  const handler = randomnessHandler(processor);
  const service = new RandomnessService({
    states,
    jobs,
    commitments,
    generator,
    contract,
    contractId,
    oracleKey: () => keyring.currentPublicKey,
    thresholds: thresholdsOf(settings, logger),
    wake: deps.onRequest ?? (() => undefined),
    clock,
  });
  const deadJobs = new DeadJobs({
    jobs,
    requests,
    submitter,
    endings,
    audit,
    highPrioritySlaMs,
    clock,
    logger,
    metrics,
  });
  const projector = new RandomnessDeadLetters({
    pipeline: PIPELINE,
    queue,
    records: deadLetters,
    describe: (job) => deadJobs.describe(job),
    findFinished: (job) => deadJobs.findFinished(job),
    onDead: (job) => deadJobs.onDead(job),
    logger,
  });
  const source = {
    pipeline: PIPELINE,
    queue,
    handler,
    lanes: settings.QUEUE_MAX_CONCURRENCY,
    retryPolicy,
    deadLetters: projector,
  };
  const runner = new SoloRunner({ source, workerId, logger });

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
    ...createRescue({
      pipeline: PIPELINE,
      jobs,
      endings,
      service,
      deadLetters: projector,
      records: deadLetters,
      runner,
      handler,
      generator,
      contract,
      contractId,
      sourceAccount: deps.signer.publicKey,
      feeEstimator: deps.feeEstimator,
      processor,
      audit,
      latestLedger,
      requestTimeoutLedgers: settings.ORACLE_REQUEST_TIMEOUT_LEDGERS,
      clock,
      logger,
    }),
    audit,
    contract,
    handler,
    work: [workSource<RandomnessJob>(source)],
    eventHandlers: randomnessEventHandlers({
      settings,
      contractId,
      contract,
      ownAddresses: () => [deps.signer.publicKey, ...keyring.activePublicKeys],
      service,
      jobs,
      queue,
      runner,
      processor,
      deadLetters: projector,
      commitments,
      submitter,
      clock,
    }),
    ensureIndexes: async () => {
      await Promise.all([
        jobs.ensureIndexes(),
        audit.ensureIndexes(),
        commitments.ensureIndexes(),
        globalSlots?.ensureSlots(),
      ]);
    },
    jobCounts: () => metricsCache.counts(),
    startBackground: () => startUpkeep({ keyring, contract, contractId, metricsCache, globalSlots, logger }),
  };
}

function routerOf({ randomness, queue }: { randomness: Router; queue: () => Router }): Router {
  const router = Router();
  router.use('/api/v1/randomness', randomness);
  router.use('/api/v1/queue', queue());
  router.use('/queue', queue());
  return router;
}
