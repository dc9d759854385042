import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { StrKey } from '@stellar/stellar-sdk';
import { exposedName } from '../../src/operations/prometheus-metrics';
import { metricTable, type MetricDefinition, type MetricName } from '../../src/platform/metric-table';
import { openTestDatabase, type TestDatabase } from '../support/database';
import { validEnvironment } from '../support/environment';
import { killPrograms, startProgram, type Program } from '../support/program';
import { parsePrometheusText, valueOf, type Family } from '../support/prometheus-text';
import { FaultyProxy } from '../support/queue-proxy';
import { until } from '../support/worker-fixture';

jest.setTimeout(90_000);

const KEY = 'key-for-tests-0123456789';
const MEDIA_CID = 'bafkreifh6ylybfxzfu6qr4veuwpo7vs4enfdnp6lucg5fflew47xazsfq4';
const MANIFEST_CID = 'bafkreiaee7vtyfdcyt3dg47woq33w4jnmwz4vk6nzplpwtlkeaqahevwuu';
const REQUESTER = 'GDJACXZPIYISP7WM4JLHLXPP6EYVGFXPT5HKK6SOZCTGR2X7ZKD76VIF';

/** A node that refuses, whose address holds keys in every place a provider may put them. */
const SECRET_RPC_URL = 'http://rpc-user:rpc-password@127.0.0.1:1/rpc-path-token?key=rpc-query-token';
const OPERATIONS = /"operationsUrl":"(http:[^"]+)"/;

/** Breaks every connection, so that attempts end in another try later; or answers nothing, so that they stay in hand. */
interface BadGateway {
  url: string;
  hangs: boolean;
  close(): void;
}

async function startBadGateway(): Promise<BadGateway> {
  const server = createServer((request) => {
    if (!gateway.hangs) request.destroy();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const gateway: BadGateway = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/ipfs`,
    hangs: false,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
  return gateway;
}

describe('what a process shows of itself', () => {
  let database: TestDatabase;
  let proxy: FaultyProxy;
  let gateway: BadGateway;
  let api: { url: string; operations: string; program: Program };
  let worker: { operations: string; program: Program };
  let ingester: { operations: string; program: Program };

  const start = (role: string, changes: Record<string, string> = {}): Program =>
    startProgram('main.ts', {
      environment: {
        ...validEnvironment(),
        NODE_ENV: 'development',
        MONGODB_URI: database.uri,
        SOROBAN_RPC_URLS: SECRET_RPC_URL,
        RAFFLE_CONTRACT_ID: StrKey.encodeContract(Buffer.alloc(32, 4)),
        HOST: '127.0.0.1',
        PORT: '0',
        OPERATIONS_PORT: '0',
        SOROLANE_ROLES: role,
        PINATA_GATEWAY_URL: gateway.url,
        VERIFICATION_WORKER_POLL_INTERVAL_MS: '50',
        WORKER_DRAIN_TIMEOUT_MS: '700',
        EVENT_QUEUE_PATH: ':memory:',
        ...changes,
      },
    });
  const operationsOf = async (program: Program): Promise<string> => (await program.says(OPERATIONS))[1]!;
  const textOf = async (url: string, headers: Record<string, string> = {}): Promise<string> => {
    const response = await fetch(`${url}/metrics`, { headers });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    return response.text();
  };
  const metricsOf = async (url: string): Promise<Map<string, Family>> =>
    parsePrometheusText(await textOf(url));

  const statusOf = async (url: string, probe: string): Promise<number> =>
    (await fetch(`${url}/health/${probe}`)).status;
  const post = async (requester: string): Promise<void> => {
    const { status } = await fetch(`${api.url}/api/v1/verification/requests`, {
      method: 'POST',
      headers: { 'x-api-key': KEY, 'content-type': 'application/json' },
      body: JSON.stringify({ manifestCid: MANIFEST_CID, mediaCid: MEDIA_CID, requester }),
    });
    expect(status).toBe(202);
  };

  beforeAll(async () => {
    gateway = await startBadGateway();
    database = await openTestDatabase();
    await database.connection.collection('deadLetteredRequests').insertMany([
      { pipeline: 'verification', requestId: 'a', replayedAt: null },
      { pipeline: 'verification', requestId: 'b', replayedAt: null },
      { pipeline: 'verification', requestId: 'c', replayedAt: new Date() },
      { pipeline: 'randomness', requestId: 'd', replayedAt: null },
    ]);
    proxy = await FaultyProxy.before(database.uri);
    const programs = {
      api: start('api'),
      worker: start('worker', { MONGODB_URI: proxy.uri }),
      ingester: start('ingester'),
    };
    api = {
      program: programs.api,
      url: (await programs.api.says(/"url":"(http:[^"]+)"/))[1]!,
      operations: await operationsOf(programs.api),
    };
    worker = { program: programs.worker, operations: await operationsOf(programs.worker) };
    ingester = { program: programs.ingester, operations: await operationsOf(programs.ingester) };
  });
  afterAll(async () => {
    await killPrograms();
    gateway.close();
    await proxy.close();
    await database.close();
  });

  test('a worker alone answers probes and counts its attempts', async () => {
    await post(REQUESTER);
    const tried = { pipeline: 'verification', outcome: 'released' };
    await until(
      'an attempt is counted',
      async () => valueOf(await metricsOf(worker.operations), 'sorolane_worker_attempts_total', tried) === 1,
    );
    const families = await metricsOf(worker.operations);
    expect(valueOf(families, 'sorolane_worker_attempt_duration_seconds_count', tried)).toBe(1);
    expect(valueOf(families, 'sorolane_worker_lanes', { pipeline: 'verification' })).toBe(1);
    expect(valueOf(families, 'sorolane_worker_lanes', { pipeline: 'randomness' })).toBe(10);
    expect(valueOf(families, 'sorolane_worker_lanes_busy', { pipeline: 'verification' })).toBe(0);
    expect(valueOf(families, 'sorolane_workers_alive')).toBe(1);
    expect(families.has('sorolane_ingestion_lag_ledgers')).toBe(false);

    for (const probe of ['live', 'ready']) expect(await statusOf(worker.operations, probe)).toBe(200);
    expect((await fetch(`${worker.operations}/api/v1/verification/jobs`)).status).toBe(404);
    expect((await fetch(`${worker.operations}/api/v1/events/health`)).status).toBe(404);
  });

  test('every process tells the same of the shared queues', async () => {
    for (const { operations } of [api, worker, ingester]) {
      const open = async (pipeline: string) =>
        valueOf(await metricsOf(operations), 'sorolane_dead_letters_open', { pipeline });
      expect(await open('verification')).toBe(2);
      expect(await open('randomness')).toBe(1);
      expect(await open('manifest-rehash')).toBe(0);
      const families = await metricsOf(operations);
      const states = families.get('sorolane_jobs')!.samples.map(({ labels }) => labels);
      expect(states).toContainEqual({ pipeline: 'verification', state: 'tee_verifying' });
      expect(states).toContainEqual({ pipeline: 'randomness', state: 'dead-lettered' });
      expect(states.filter(({ pipeline }) => pipeline === 'randomness')).toHaveLength(8);
    }
  });

  test('an ingester alone shows its health and its figures', async () => {
    const health = await fetch(`${ingester.operations}/api/v1/events/health`);
    expect(await health.json()).toMatchObject({ data: { role: 'leading', queue: { pending: 0 } } });
    const families = await metricsOf(ingester.operations);
    expect(valueOf(families, 'sorolane_ingestion_leading')).toBe(1);
    expect(valueOf(families, 'sorolane_ingestion_pending_events')).toBe(0);
    expect(valueOf(families, 'sorolane_ingestion_oldest_pending_age_seconds')).toBe(0);
    expect(families.has('sorolane_worker_lanes')).toBe(false);
  });

  test('what stands there is what the table says, and no secret', async () => {
    const { version } = JSON.parse(readFileSync(path.join(__dirname, '../../package.json'), 'utf8')) as {
      version: string;
    };
    const known = new Map(
      Object.entries<MetricDefinition>(metricTable).map(([name, definition]) => [
        exposedName(name as MetricName),
        definition,
      ]),
    );
    for (const { operations } of [api, worker, ingester]) {
      const text = await textOf(operations);
      const families = parsePrometheusText(text);
      const ours = [...families].filter(([name]) => name.startsWith('sorolane_'));
      for (const [name, { kind, samples }] of ours) {
        expect([name, kind]).toEqual([name, known.get(name)?.kind]);
        for (const { labels } of samples)
          expect([...known.get(name)!.labels, 'le']).toEqual(expect.arrayContaining(Object.keys(labels)));
      }
      expect(valueOf(families, 'sorolane_build_info', { version })).toBe(1);
      expect(families.has('process_resident_memory_bytes')).toBe(true);
      for (const secret of ['rpc-', KEY, 'hunter2', validEnvironment()['STELLAR_ORACLE_SECRET_KEY']!])
        expect(text).not.toContain(secret);
    }
    const asked = { endpoint: 'http://127.0.0.1:1', outcome: 'RPC_UNREACHABLE' };
    expect(
      valueOf(await metricsOf(ingester.operations), 'sorolane_stellar_rpc_calls_total', asked),
    ).toBeGreaterThan(0);
  });

  test('on the port of the API a key is asked for', async () => {
    const statusWith = async (headers: Record<string, string>) =>
      (await fetch(`${api.url}/metrics`, { headers })).status;
    expect(await statusWith({})).toBe(401);
    expect(await statusWith({ 'x-api-key': 'not-a-key-0123456789' })).toBe(401);
    expect(await statusWith({ authorization: 'Bearer not-a-key-0123456789' })).toBe(401);
    expect(await statusWith({ authorization: `Basic ${KEY}` })).toBe(401);
    const accepted: Record<string, string>[] = [{ 'x-api-key': KEY }, { authorization: `Bearer ${KEY}` }];
    for (const headers of accepted)
      expect(parsePrometheusText(await textOf(api.url, headers)).has('sorolane_jobs')).toBe(true);
  });

  test('while the database is away a scrape still answers, without what nobody knows', async () => {
    await until('shared figures are there', async () =>
      (await metricsOf(worker.operations)).has('sorolane_workers_alive'),
    );
    proxy.down();
    await until(
      'they are left out',
      async () => !(await metricsOf(worker.operations)).has('sorolane_workers_alive'),
    );
    const askedAt = performance.now();
    const [families, live, ready] = await Promise.all([
      metricsOf(worker.operations),
      statusOf(worker.operations, 'live'),
      statusOf(worker.operations, 'ready'),
    ]);
    expect(performance.now() - askedAt).toBeLessThan(4_000);
    expect(valueOf(families, 'sorolane_scrape_errors_total', { source: 'workers' })).toBeGreaterThan(0);
    expect(valueOf(families, 'sorolane_worker_lanes', { pipeline: 'verification' })).toBe(1);
    expect([live, ready]).toEqual([200, 503]);

    proxy.up();
    await until('they are there again', async () =>
      (await metricsOf(worker.operations)).has('sorolane_workers_alive'),
    );
    await until('it is ready', async () => (await statusOf(worker.operations, 'ready')) === 200);
  });

  test('a worker that drains is alive and not ready, its figures are there, and the port goes with it', async () => {
    gateway.hangs = true;
    await post(REQUESTER);
    const busy = async () =>
      valueOf(await metricsOf(worker.operations), 'sorolane_worker_lanes_busy', { pipeline: 'verification' });
    await until('it is at work', async () => (await busy()) === 1);

    worker.program.child.kill('SIGTERM');
    await until('it drains', async () => (await statusOf(worker.operations, 'ready')) === 503);
    expect(await statusOf(worker.operations, 'live')).toBe(200);
    expect(await busy()).toBe(1);
    expect((await worker.program.ended).code).toBe(0);
    await expect(fetch(`${worker.operations}/health/live`)).rejects.toThrow();
  });
});
