import type { Connection } from 'mongoose';
import { requireApiKey, requireReaderKey } from './http/api-key';
import { createApp } from './http/app';
import { attachEventStream } from './http/event-stream';
import { eventsRoutes } from './http/events.routes';
import { metricsRoutes } from './http/metrics.routes';
import { createOperationsApp } from './http/operations-app';
import { listen, type RunningServer } from './http/server';
import { houseGauges } from './operations/house-gauges';
import { PrometheusMetrics } from './operations/prometheus-metrics';
import { databaseCheck, workerCheck } from './operations/readiness';
import { Scraper } from './operations/scrape';
import { readVersion } from './operations/version';
import { workerHealthService } from './operations/worker-health.service';
import { EventFeed } from './ingestion/event-feed';
import { EventPropagator } from './ingestion/event-propagator';
import { loadHandlerModules } from './ingestion/handler-modules';
import { IngestionStateRepository } from './ingestion/ingestion-state.repository';
import { tuningFrom } from './ingestion/ingestion-tuning';
import type { Config } from './platform/config';
import { connectDatabase } from './platform/database/connection';
import { ensureIndexes } from './platform/database/indexes';
import type { Logger } from './platform/logger';
import { deadLetterModel } from './queue/dead-letter.model';
import { DeadLetterRepository } from './queue/dead-letters';
import { createRandomnessPipeline } from './randomness/randomness.pipeline';
import { decodeContractValue } from './stellar/scval-codec';
import { createStellarLayer, type StellarLayer } from './stellar/stellar-layer';
import { createVerificationPipeline } from './verification/verification.pipeline';
import { workerHeartbeatModel } from './worker/worker-heartbeat.model';
import { WorkerHeartbeatRepository } from './worker/worker-heartbeats';
import { WorkerPool } from './worker/worker-pool';

/** A running process of the house. */
export interface House {
  /** Where the API listens, if this process has that role. */
  url: string | null;
  /** Where its probes and metrics are, if OPERATIONS_PORT is set. */
  operationsUrl: string | null;
  /** Drains the work in hand and lets open requests end, then closes what both stand on. */
  stop(): Promise<void>;
}

/** What every role stands on. */
interface Foundation {
  config: Config;
  logger: Logger;
  metrics: PrometheusMetrics;
  connection: Connection;
  stellar: StellarLayer;
  deadLetters: DeadLetterRepository;
  heartbeats: WorkerHeartbeatRepository;
  pipelines: ReturnType<typeof createPipelines>;
  doorbell: Doorbell;
}

/** Rung when a request came in by this process; its own lanes, if it has any, needn't wait for their next look then. */
interface Doorbell {
  ring: () => void;
}

/** What of this process works by itself, where it has the role. */
interface Running {
  pool: WorkerPool | null;
  ingester: EventPropagator | null;
}

/** The pipelines, a line each. One that is not configured is null. */
function createPipelines({
  config,
  logger,
  metrics,
  connection,
  stellar,
  deadLetters,
  doorbell,
}: Omit<Foundation, 'pipelines' | 'heartbeats'>) {
  const shared = {
    connection,
    settings: config,
    signer: stellar.oracle,
    submitter: stellar.submitter,
    reader: stellar.reader,
    feeEstimator: stellar.feeEstimator,
    witnesses: stellar.witnesses,
    latestLedger: (signal: AbortSignal) => stellar.events.getLatestLedger(signal),
    deadLetters,
    requireApiKey: requireApiKey(config.API_KEYS),
    onRequest: () => doorbell.ring(),
    logger,
    metrics,
  };
  return [createVerificationPipeline(shared), createRandomnessPipeline(shared)].filter(
    (pipeline) => pipeline !== null,
  );
}

/** @throws whatever keeps this process from starting: no database, an index that can't be made, a port in use. */
export async function openHouse(config: Config, logger: Logger): Promise<House> {
  const connection = await connectDatabase({
    uri: config.MONGODB_URI,
    serverSelectionTimeoutMs: config.MONGODB_CONNECT_TIMEOUT_MS,
    logger,
  });
  const foundations: Closer[] = [() => connection.close()];
  const workers: Closer[] = [];
  const frontDoors: Closer[] = [];
  const stop = async (): Promise<void> => {
    // At the same time: a request that is slow to end must not keep the worker claiming, and a job none from being answered.
    await Promise.all([closeInTurn(workers), closeInTurn(frontDoors)]);
    await closeInTurn(foundations);
  };
  try {
    const foundation = await layFoundation(config, logger, connection);
    foundations.push(() => foundation.stellar.close());
    const roles = new Set(config.SOROLANE_ROLES);
    const worker = roles.has('worker') ? await openWorker(foundation) : null;
    if (worker !== null) workers.push(worker.close);
    const ingester = roles.has('ingester') ? await openIngester(foundation) : null;
    if (ingester !== null) frontDoors.push(() => ingester.stop());
    const running: Running = { pool: worker?.pool ?? null, ingester };
    const scraper = scraperOf(foundation, running);
    const api = roles.has('api') ? await openApi(foundation, running, scraper) : null;
    if (api !== null) frontDoors.push(api.close);
    const operations = await openOperations(foundation, running, scraper);
    // Among what is closed last: a process that drains is alive, and its figures count.
    if (operations !== null) foundations.push(() => operations.close());
    const urls = { url: api?.url ?? null, operationsUrl: operations?.url ?? null };
    logger.info({ roles: [...roles], ...urls }, 'started');
    return { ...urls, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

type Closer = () => Promise<void>;

/** The last that was opened first. */
async function closeInTurn(closers: Closer[]): Promise<void> {
  for (let close = closers.pop(); close !== undefined; close = closers.pop()) await close();
}

async function layFoundation(config: Config, logger: Logger, connection: Connection): Promise<Foundation> {
  const heartbeatModel = workerHeartbeatModel(connection);
  const deadLetterRecords = deadLetterModel(connection);
  const metrics = new PrometheusMetrics();
  const stellar = createStellarLayer({ settings: config, connection, logger, metrics });
  const deadLetters = new DeadLetterRepository(deadLetterRecords);
  const doorbell: Doorbell = { ring: () => undefined };
  const shared = { config, logger, metrics, connection, stellar, deadLetters, doorbell };
  const pipelines = createPipelines(shared);
  await Promise.all([
    ensureIndexes(heartbeatModel),
    ensureIndexes(deadLetterRecords),
    stellar.ensureIndexes(),
    ...pipelines.map((pipeline) => pipeline.ensureIndexes()),
  ]);
  await stellar.verifyIndexes();
  return {
    ...shared,
    heartbeats: new WorkerHeartbeatRepository(heartbeatModel),
    pipelines,
  };
}

async function openWorker({
  config,
  logger,
  metrics,
  stellar,
  heartbeats,
  pipelines,
  doorbell,
}: Foundation): Promise<{ pool: WorkerPool; close: Closer }> {
  const pool = new WorkerPool({
    sources: pipelines.flatMap(({ work }) => work),
    heartbeats,
    logger,
    metrics,
    pollIntervalMs: config.VERIFICATION_WORKER_POLL_INTERVAL_MS,
    batchSize: config.VERIFICATION_WORKER_BATCH_SIZE,
    heartbeatIntervalMs: config.VERIFICATION_WORKER_HEARTBEAT_INTERVAL_MS,
    drainTimeoutMs: config.WORKER_DRAIN_TIMEOUT_MS,
  });
  await pool.start();
  doorbell.ring = () => pool.wake();
  stellar.recovery.start();
  const stopBackground = pipelines.map((pipeline) => pipeline.startBackground());
  const close = async (): Promise<void> => {
    // What runs beside the lanes (renewals of their slots) is needed until they have drained.
    await pool.stop();
    await Promise.all(stopBackground.map((stop) => stop()));
  };
  return { pool, close };
}

async function openIngester(foundation: Foundation): Promise<EventPropagator> {
  const { config, logger, metrics, connection, stellar, pipelines } = foundation;
  const handlers = [
    ...pipelines.flatMap(({ eventHandlers }) => eventHandlers),
    ...(await loadHandlerModules(config.EVENT_HANDLER_MODULES)),
  ];
  const followed = new Set([
    ...handlers.flatMap(({ contracts = [] }) => contracts),
    ...config.EVENT_CONTRACT_IDS,
  ]);
  const propagator = new EventPropagator({
    source: stellar.events,
    decode: decodeContractValue,
    contractIds: [...followed],
    handlers,
    queuePath: config.EVENT_QUEUE_PATH,
    ...(config.EVENT_CURSOR === undefined ? {} : { cursorOverride: config.EVENT_CURSOR }),
    startLedger: config.EVENT_INGESTION_START_LEDGER,
    state: new IngestionStateRepository(connection),
    tuning: tuningFrom(config),
    logger,
    metrics,
  });
  propagator.start();
  return propagator;
}

function scraperOf(
  { config, logger, metrics, deadLetters, heartbeats, pipelines }: Foundation,
  { pool, ingester }: Running,
): Scraper {
  const sources = houseGauges({
    heartbeats,
    workerStaleMs: config.WORKER_HEARTBEAT_STALE_MS,
    deadLetters,
    pipelines: pipelines.map((pipeline) => ({
      name: pipeline.name,
      countJobs: () => pipeline.jobCounts(),
    })),
    deadLetterPipelines: pipelines.flatMap(({ work }) => work.map(({ pipeline }) => pipeline)),
    lanes: pool === null ? null : () => pool.lanes(),
    ingestion: ingester === null ? null : () => ingester.health(),
  });
  return new Scraper({ metrics, sources, version: readVersion(), logger });
}

/** With an ingester in the same process, the API shows its health and streams the events of its queue file. */
async function openApi(
  { config, logger, connection, deadLetters, heartbeats, pipelines }: Foundation,
  { ingester }: Running,
  scraper: Scraper,
): Promise<{ url: string; close: Closer }> {
  const mounts = pipelines.map(({ basePath, router }) => ({ path: basePath, router }));
  mounts.push({ path: '/', router: metricsRoutes(scraper, requireReaderKey(config.API_KEYS)) });
  if (ingester !== null)
    mounts.push({ path: '/api/v1/events', router: eventsRoutes(() => ingester.health()) });
  const app = createApp({
    logger,
    corsOrigins: config.CORS_ORIGIN,
    bodyLimitBytes: config.HTTP_BODY_LIMIT_BYTES,
    health: {
      workers: workerHealthService({
        heartbeats,
        deadLetters,
        staleMs: config.WORKER_HEARTBEAT_STALE_MS,
        logger,
      }),
      readiness: [databaseCheck(connection)],
    },
    mounts,
  });
  const running = await listen(app, {
    name: 'the API (PORT)',
    host: config.HOST,
    port: config.PORT,
    shutdownTimeoutMs: config.HTTP_SHUTDOWN_TIMEOUT_MS,
  });
  // So that nobody waits for the first count.
  for (const pipeline of pipelines) pipeline.jobCounts().catch(() => undefined);
  if (ingester === null) return running;
  const stream = attachEventStream(running.server, {
    feed: new EventFeed(ingester.queue.store, decodeContractValue),
    apiKeys: config.API_KEYS,
    heartbeatMs: config.EVENT_STREAM_HEARTBEAT_MS,
    stallMs: config.EVENT_STREAM_STALL_MS,
    maxClients: config.EVENT_STREAM_MAX_CLIENTS,
    logger,
  });
  return {
    url: running.url,
    close: () => {
      stream.close();
      return running.close();
    },
  };
}

/** Null where OPERATIONS_PORT is not set. */
async function openOperations(
  { config, logger, connection }: Foundation,
  { pool, ingester }: Running,
  scraper: Scraper,
): Promise<RunningServer | null> {
  if (config.OPERATIONS_PORT === undefined) return null;
  const app = createOperationsApp({
    logger,
    scraper,
    readiness: [databaseCheck(connection), ...(pool === null ? [] : [workerCheck(pool)])],
    ingestion: ingester === null ? null : () => ingester.health(),
  });
  return listen(app, {
    name: 'the operations port (OPERATIONS_PORT)',
    host: config.HOST,
    port: config.OPERATIONS_PORT,
    shutdownTimeoutMs: config.HTTP_SHUTDOWN_TIMEOUT_MS,
  });
}
