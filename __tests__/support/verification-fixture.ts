import { randomUUID } from 'node:crypto';
import { Keypair } from '@stellar/stellar-sdk';
import { ensureIndexes } from '../../src/platform/database/indexes';
import { describeFailure } from '../../src/platform/errors';
import type { WorkerId } from '../../src/platform/ids';
import { silentLogger } from '../../src/platform/logger';
import { MongoWorkerQueue } from '../../src/queue/mongo-worker-queue';
import type { ClaimedJob } from '../../src/queue/worker-queue';
import { rawPublicKey, signerFromSecret } from '../../src/stellar/keys';
import { Provenance } from '../../src/verification/provenance';
import { IpfsGateway } from '../../src/verification/spv/ipfs-gateway';
import {
  verificationHandler,
  type VerificationHandlerDeps,
} from '../../src/verification/verification.handler';
import { VerificationService } from '../../src/verification/verification.service';
import { VerificationJobs } from '../../src/verification/verification-jobs.repository';
import {
  type VerificationRequest,
  verificationRequestModel,
} from '../../src/verification/verification-request.model';
import type { JobHandler, JobOutcome } from '../../src/worker/job-handler';
import { WorkerHeartbeatRepository } from '../../src/worker/worker-heartbeats';
import { workerHeartbeatModel } from '../../src/worker/worker-heartbeat.model';
import { WorkerPool } from '../../src/worker/worker-pool';
import { requireApiKey } from '../../src/http/api-key';
import { deadLetterModel } from '../../src/queue/dead-letter.model';
import { DeadLetterRepository } from '../../src/queue/dead-letters';
import { type ManifestCheck, manifestCheckModel } from '../../src/verification/rehash/manifest-check.model';
import {
  createVerificationPipeline,
  type VerificationPipelineDeps,
  type VerificationPipelineSettings,
} from '../../src/verification/verification.pipeline';
import { openTestDatabase } from './database';
import { FakeChain, provenanceId } from './verification-chain';
import { putSample, type SampleOptions, StubGateway } from './verification-gateway';

export const oracleId = 'CORACLE';
export const apiKey = 'a-key-of-the-test';
export const codeMeasurementHash = 'c0'.repeat(32);

/** The pipeline on a database of its own, a gateway on a port of its own, and a chain in memory. */
export async function verificationFixture({ leaseMs = 60_000, maxAttempts = 3 } = {}) {
  const database = await openTestDatabase();
  const gateway = await new StubGateway().start();
  const chain = new FakeChain();
  const model = verificationRequestModel(database.connection);
  const queue = new MongoWorkerQueue<VerificationRequest>({ model, leaseMs, maxAttempts });
  const jobs = new VerificationJobs(database.connection, silentLogger());
  const service = new VerificationService({ queue, jobs });
  const signer = signerFromSecret(Keypair.random().secret());
  const requester = Keypair.random().publicKey();

  const deps: VerificationHandlerDeps = {
    queue,
    jobs,
    content: {
      gateway: new IpfsGateway({ baseUrl: gateway.baseUrl, timeoutMs: 2000 }),
      limits: { maxManifestBytes: 10_000, maxMediaBytes: 100_000 },
    },
    attestation: { signer, codeMeasurementHash },
    authorization: {
      authorization: { reader: chain, registryContractId: 'CREGISTRY', oracleContractId: oracleId },
      publicKey: signer.publicKey,
      rawPublicKey: rawPublicKey(signer.publicKey),
    },
    mint: {
      submitter: chain,
      provenance: new Provenance({
        contractId: provenanceId,
        lookupFunction: 'get_certificate_by_manifest',
        reader: chain,
      }),
      confirmTimeoutMs: 1000,
      recheckMs: 50,
    },
  };

  const heartbeats = workerHeartbeatModel(database.connection);
  const deadLetterRecords = deadLetterModel(database.connection);
  await Promise.all([ensureIndexes(heartbeats), ensureIndexes(deadLetterRecords)]);
  const deadLetters = new DeadLetterRepository(deadLetterRecords);
  const settings: VerificationPipelineSettings = {
    PINATA_GATEWAY_URL: gateway.baseUrl,
    SPV_FETCH_TIMEOUT_MS: 2000,
    SPV_MAX_MEDIA_BYTES: 100_000,
    SPV_MAX_MANIFEST_BYTES: 10_000,
    ORACLE_CODE_MEASUREMENT_HASH: codeMeasurementHash,
    PROVENANCE_LOOKUP_FUNCTION: 'get_certificate_by_manifest',
    MINT_RECHECK_MS: 50,
    MANIFEST_REHASH_ENABLED: true,
    MANIFEST_REHASH_INTERVAL_MS: 60_000,
    MANIFEST_REHASH_BATCH_SIZE: 10,
    VERIFICATION_REQUESTED_TOPIC: 'verification_requested',
    CERTIFICATE_MINTED_TOPIC: 'certificate_minted',
    VERIFICATION_WORKER_CONCURRENCY: 1,
    VERIFICATION_WORKER_LEASE_MS: leaseMs,
    VERIFICATION_WORKER_MAX_ATTEMPTS: maxAttempts,
    VERIFICATION_WORKER_RETRY_BASE_MS: 20,
    STELLAR_TX_CONFIRMATION_TIMEOUT_MS: 1000,
    STELLAR_REGISTRY_CONTRACT_ID: 'CREGISTRY',
    STELLAR_ORACLE_CONTRACT_ID: oracleId,
    STELLAR_PROVENANCE_CONTRACT_ID: provenanceId,
  };
  const pipelineDeps: VerificationPipelineDeps = {
    connection: database.connection,
    settings,
    signer,
    submitter: chain,
    reader: chain,
    deadLetters,
    requireApiKey: requireApiKey([apiKey]),
    logger: silentLogger(),
  };
  const pipeline = createVerificationPipeline(pipelineDeps);
  await pipeline.ensureIndexes();

  return {
    database,
    gateway,
    chain,
    queue,
    jobs,
    service,
    signer,
    requester,
    deps,
    handler: verificationHandler(deps),
    deadLetters,
    pipeline,
    checks: new MongoWorkerQueue<ManifestCheck>({
      model: manifestCheckModel(database.connection),
      leaseMs,
      maxAttempts,
    }),
    /** A process's worth of lanes over the pipeline; the caller stops it. */
    pool(lanes: number): WorkerPool {
      return new WorkerPool({
        sources: createVerificationPipeline({
          ...pipelineDeps,
          settings: { ...settings, VERIFICATION_WORKER_CONCURRENCY: lanes },
        }).work,
        heartbeats: new WorkerHeartbeatRepository(heartbeats),
        logger: silentLogger(),
        pollIntervalMs: 50,
        batchSize: 10,
        heartbeatIntervalMs: 60_000,
        drainTimeoutMs: 5000,
      });
    },
    /** Submits a request for a sample of its own. */
    async submit(options: Partial<SampleOptions> = {}) {
      const sample = await putSample(gateway, { creator: requester, ...options });
      const submitted = await service.submitByKey({ ...sample, requester }, randomUUID());
      return { ...sample, ...submitted };
    },
    async requestOf(requestId: string) {
      const request = await queue.find(requestId);
      if (request === null) throw new Error('no such request');
      return request;
    },
    async jobOf(jobId: string) {
      const job = await jobs.find(jobId);
      if (job === null) throw new Error('no such job');
      return job;
    },
    /** What time would do if its holder were gone; nothing where nobody holds it. */
    async expireLease(requestId: string): Promise<void> {
      const { _id } = (await queue.find(requestId)) ?? {};
      await model.collection.updateOne(
        { _id, phase: 'leased' },
        { $set: { 'lease.expiresAt': new Date(0) } },
      );
    },
    /** Empties the database; indexes stay. Quicker than another one. */
    async clear(): Promise<void> {
      const names = [
        'verificationRequestEvents',
        'verificationJobs',
        'manifestChecks',
        'deadLetteredRequests',
      ];
      await Promise.all(names.map((name) => database.connection.collection(name).deleteMany({})));
      chain.certificates.clear();
      chain.submissions.clear();
      chain.signed.length = 0;
    },
    async close(): Promise<void> {
      await gateway.stop();
      await database.close();
    },
  };
}

export type VerificationFixture = Awaited<ReturnType<typeof verificationFixture>>;

export async function claim(
  queue: MongoWorkerQueue<VerificationRequest>,
  worker = 'worker-1',
): Promise<ClaimedJob<VerificationRequest>> {
  const result = await queue.claim({ workerId: worker as WorkerId, lane: 0 });
  if (result.kind === 'empty') throw new Error('nothing to claim');
  return result.claimed;
}

/** One try of the handler, with what it throws as the failure that a lane would make of it. */
export async function attempt(
  handler: JobHandler<VerificationRequest>,
  claimed: ClaimedJob<VerificationRequest>,
  signal: AbortSignal = new AbortController().signal,
): Promise<JobOutcome<VerificationRequest>> {
  try {
    return await handler(claimed, { signal, logger: silentLogger() });
  } catch (error) {
    const failure = describeFailure(error);
    return { kind: failure.retryable ? 'retry' : 'dead', failure };
  }
}

/** Claims, tries once, and writes the outcome to the queue as a lane does. */
export async function runOnce(
  { queue, handler }: Pick<VerificationFixture, 'queue' | 'handler'>,
  worker = 'worker-1',
): Promise<JobOutcome<VerificationRequest>> {
  const claimed = await claim(queue, worker);
  const outcome = await attempt(handler, claimed);
  const { lease } = claimed;
  switch (outcome.kind) {
    case 'completed':
      await queue.complete(lease, outcome.patch);
      break;
    case 'retry':
      await queue.release(lease, { delayMs: 0, failure: outcome.failure }, outcome.patch);
      break;
    case 'dead':
      await queue.deadLetter(lease, outcome.failure, outcome.patch);
      break;
    case 'postponed':
      await queue.release(lease, { delayMs: 0, refundAttempt: true });
      break;
    case 'lease_lost':
  }
  return outcome;
}
