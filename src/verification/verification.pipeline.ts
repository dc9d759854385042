import type { RequestHandler, Router } from 'express';
import type { Connection } from 'mongoose';
import type { z } from 'zod';
import type { EventHandler } from '../ingestion/event-handler';
import { type Clock, systemClock } from '../platform/clock';
import { ensureIndexes } from '../platform/database/indexes';
import type { Logger } from '../platform/logger';
import type { verificationSettings } from '../platform/settings/verification.settings';
import { DeadLetterProjector } from '../queue/dead-letter-projector';
import type { DeadLetterRepository } from '../queue/dead-letters';
import { MongoWorkerQueue } from '../queue/mongo-worker-queue';
import { doublingFrom } from '../queue/retry-policy';
import { rawPublicKey, type Signer } from '../stellar/keys';
import type { ContractReader, TransactionSubmitter } from '../stellar/submission';
import { type WorkSource, workSource } from '../worker/work-source';
import { describeDeadRequest, failJobOfDead, findEndOfDead } from './dead-request';
import { certificateMintedHandler } from './events/certificate-minted.handler';
import { verificationRequestedHandler } from './events/verification-requested.handler';
import { Provenance } from './provenance';
import { manifestCheckHandler } from './rehash/manifest-check.handler';
import { type ManifestCheck, manifestCheckModel } from './rehash/manifest-check.model';
import { startManifestRehashWorker } from './rehash/manifest-rehash-worker';
import { IpfsGateway } from './spv/ipfs-gateway';
import { verificationHandler } from './verification.handler';
import { verificationRoutes } from './verification.routes';
import { VerificationService } from './verification.service';
import type { VerificationJobState } from './verification-job.lifecycle';
import { VerificationJobs } from './verification-jobs.repository';
import { type VerificationRequest, verificationRequestModel } from './verification-request.model';

type OwnSettings = {
  [Name in keyof typeof verificationSettings]: z.infer<(typeof verificationSettings)[Name]>;
};

/** Under the names of their variables, so that the parsed configuration is one. */
export interface VerificationPipelineSettings extends OwnSettings {
  VERIFICATION_WORKER_CONCURRENCY: number;
  VERIFICATION_WORKER_LEASE_MS: number;
  VERIFICATION_WORKER_MAX_ATTEMPTS: number;
  VERIFICATION_WORKER_RETRY_BASE_MS: number;
  STELLAR_TX_CONFIRMATION_TIMEOUT_MS: number;
  STELLAR_REGISTRY_CONTRACT_ID: string;
  STELLAR_ORACLE_CONTRACT_ID: string;
  STELLAR_PROVENANCE_CONTRACT_ID: string;
}

export interface VerificationPipelineDeps {
  connection: Connection;
  settings: VerificationPipelineSettings;
  /** The oracle's key: it attests, and the contracts know it. */
  signer: Signer;
  submitter: TransactionSubmitter;
  reader: ContractReader;
  deadLetters: DeadLetterRepository;
  requireApiKey: RequestHandler;
  logger: Logger;
  clock?: Clock;
  /** A hint that a request came in, for idle lanes of this process. */
  onRequest?: () => void;
}

export interface VerificationPipeline {
  readonly name: typeof PIPELINE;
  readonly basePath: string;
  readonly router: Router;
  readonly service: VerificationService;
  readonly queue: MongoWorkerQueue<VerificationRequest>;
  /** Replays dead requests. */
  readonly projector: DeadLetterProjector<VerificationRequest>;
  readonly work: readonly WorkSource[];
  readonly eventHandlers: readonly EventHandler[];
  ensureIndexes(): Promise<void>;
  /** Jobs by state. */
  jobCounts(): Promise<Record<VerificationJobState, number>>;
  /** What runs beside the lanes in a worker process. @returns how to stop it. */
  startBackground(): () => Promise<void>;
}

const PIPELINE = 'verification';
const CHECKS = 'manifest-rehash';
/** A check is one small fetch; a second lane would only take the gateway from the requests. */
const CHECK_LANES = 1;

/** The whole pipeline, from the parts of the floors below. */
export function createVerificationPipeline(deps: VerificationPipelineDeps): VerificationPipeline {
  const { connection, settings, signer, submitter, reader, deadLetters, requireApiKey } = deps;
  const logger = deps.logger.child({ pipeline: PIPELINE });
  const clock = deps.clock ?? systemClock;
  const retryPolicy = doublingFrom(settings.VERIFICATION_WORKER_RETRY_BASE_MS);
  const queueOptions = {
    leaseMs: settings.VERIFICATION_WORKER_LEASE_MS,
    maxAttempts: settings.VERIFICATION_WORKER_MAX_ATTEMPTS,
    clock,
  };

  const requests = verificationRequestModel(connection);
  const manifestChecks = manifestCheckModel(connection);
  const queue = new MongoWorkerQueue<VerificationRequest>({ model: requests, ...queueOptions });
  const checks = new MongoWorkerQueue<ManifestCheck>({ model: manifestChecks, ...queueOptions });
  const jobs = new VerificationJobs(connection, logger);
  const service = new VerificationService({ queue, jobs });
  const gateway = new IpfsGateway({
    baseUrl: settings.PINATA_GATEWAY_URL,
    timeoutMs: settings.SPV_FETCH_TIMEOUT_MS,
  });
  const provenance = new Provenance({
    contractId: settings.STELLAR_PROVENANCE_CONTRACT_ID,
    lookupFunction: settings.PROVENANCE_LOOKUP_FUNCTION,
    reader,
  });
  const projector = new DeadLetterProjector<VerificationRequest>({
    pipeline: PIPELINE,
    queue,
    records: deadLetters,
    describe: describeDeadRequest,
    findFinished: (request) => findEndOfDead(request, { jobs, submitter, provenance, clock }),
    onDead: (request) => failJobOfDead(request, { jobs }),
    logger,
  });
  // The handler ends a check whose manifest can't be had; dead is only one that keeps killing its worker.
  const checkProjector = new DeadLetterProjector<ManifestCheck>({
    pipeline: CHECKS,
    queue: checks,
    records: deadLetters,
    describe: (check) => ({ verificationJobId: check.verificationJobId.toHexString() }),
    logger,
  });

  const requestWork = workSource<VerificationRequest>({
    pipeline: PIPELINE,
    queue,
    lanes: settings.VERIFICATION_WORKER_CONCURRENCY,
    retryPolicy,
    deadLetters: projector,
    handler: verificationHandler({
      queue,
      jobs,
      content: {
        gateway,
        limits: {
          maxManifestBytes: settings.SPV_MAX_MANIFEST_BYTES,
          maxMediaBytes: settings.SPV_MAX_MEDIA_BYTES,
        },
      },
      attestation: { signer, codeMeasurementHash: settings.ORACLE_CODE_MEASUREMENT_HASH },
      authorization: {
        authorization: {
          reader,
          registryContractId: settings.STELLAR_REGISTRY_CONTRACT_ID,
          oracleContractId: settings.STELLAR_ORACLE_CONTRACT_ID,
        },
        publicKey: signer.publicKey,
        rawPublicKey: rawPublicKey(signer.publicKey),
      },
      mint: {
        submitter,
        provenance,
        confirmTimeoutMs: settings.STELLAR_TX_CONFIRMATION_TIMEOUT_MS,
        recheckMs: settings.MINT_RECHECK_MS,
      },
    }),
  });
  const checkWork = workSource<ManifestCheck>({
    pipeline: CHECKS,
    queue: checks,
    lanes: CHECK_LANES,
    retryPolicy,
    deadLetters: checkProjector,
    handler: manifestCheckHandler({
      queue,
      jobs,
      gateway,
      maxManifestBytes: settings.SPV_MAX_MANIFEST_BYTES,
    }),
  });

  return {
    name: PIPELINE,
    basePath: '/api/v1/verification',
    router: verificationRoutes({ service, requireApiKey }),
    service,
    queue,
    projector,
    work: settings.MANIFEST_REHASH_ENABLED ? [requestWork, checkWork] : [requestWork],
    eventHandlers: [
      verificationRequestedHandler({
        service,
        topic: settings.VERIFICATION_REQUESTED_TOPIC,
        contractId: settings.STELLAR_ORACLE_CONTRACT_ID,
        ...(deps.onRequest === undefined ? {} : { onRequest: deps.onRequest }),
      }),
      certificateMintedHandler({
        jobs,
        provenance,
        topic: settings.CERTIFICATE_MINTED_TOPIC,
        contractId: settings.STELLAR_PROVENANCE_CONTRACT_ID,
        clock,
      }),
    ],
    ensureIndexes: async () => {
      await Promise.all([ensureIndexes(requests), ensureIndexes(manifestChecks), jobs.ensureIndexes()]);
    },
    jobCounts: () => jobs.countByState(),
    startBackground: () =>
      settings.MANIFEST_REHASH_ENABLED
        ? startManifestRehashWorker({
            jobs,
            checks,
            intervalMs: settings.MANIFEST_REHASH_INTERVAL_MS,
            batchSize: settings.MANIFEST_REHASH_BATCH_SIZE,
            logger,
          })
        : () => Promise.resolve(),
  };
}
