import { connect } from 'node:net';
import { openTestDatabase, type TestDatabase } from '../support/database';
import { validEnvironment } from '../support/environment';
import { killPrograms, startProgram, type Program } from '../support/program';
import { FaultyProxy } from '../support/queue-proxy';
import { until } from '../support/worker-fixture';

interface HealthBody {
  success: boolean;
  data: {
    status: string;
    aliveWorkers: number;
    workers: { workerId: string; status: string; alive: boolean }[];
    problem?: string;
  };
}

/** Whole processes start here, on a machine that may be busy with the other tests. */
jest.setTimeout(90_000);

describe('a process of the house', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase();
  });
  afterEach(killPrograms);
  afterAll(() => database.close());

  const environment = (changes: Record<string, string> = {}): Record<string, string> => ({
    ...validEnvironment(),
    NODE_ENV: 'development',
    MONGODB_URI: database.uri,
    HOST: '127.0.0.1',
    PORT: '0',
    VERIFICATION_WORKER_POLL_INTERVAL_MS: '100',
    WORKER_DRAIN_TIMEOUT_MS: '2000',
    EVENT_QUEUE_PATH: ':memory:',
    ...changes,
  });
  const urlOf = async (program: Program): Promise<string> => (await program.says(/"url":"(http:[^"]+)"/))[1]!;
  const healthOf = async (url: string): Promise<{ status: number; body: HealthBody }> => {
    const response = await fetch(`${url}/api/v1/worker/health`);
    return { status: response.status, body: (await response.json()) as HealthBody };
  };

  test('without configuration it says all that is missing, and ends with 1', async () => {
    const { code, stdout, stderr } = await startProgram('main.ts').ended;
    expect(code).toBe(1);
    for (const name of ['MONGODB_URI', 'API_KEYS', 'SOROBAN_RPC_URLS', 'STELLAR_ORACLE_SECRET_KEY'])
      expect(stderr).toContain(name);
    expect(stderr).not.toMatch(/^\s+at /m);
    expect(stdout).toBe('');
  });

  test('without its database it ends with 1, says which, and gives no password away', async () => {
    const { code, stdout, stderr } = await startProgram('main.ts', {
      environment: environment({
        MONGODB_URI: 'mongodb://user:hunter2@127.0.0.1:1/none',
        MONGODB_CONNECT_TIMEOUT_MS: '500',
        HORIZON_URL: 'https://horizon.example',
      }),
    }).ended;
    expect(code).toBe(1);
    expect(stdout).toContain('HORIZON_URL is set, but nothing reads it');
    expect(stderr).toContain('127.0.0.1:1');
    expect(stderr).not.toContain('hunter2');
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  test('its worker shows in the health of another process, and is gone once it was stopped', async () => {
    const api = startProgram('main.ts', { environment: environment({ SOROLANE_ROLES: 'api' }) });
    const url = await urlOf(api);
    expect(await healthOf(url)).toMatchObject({
      status: 503,
      body: { success: false, data: { status: 'unhealthy', workers: [] } },
    });

    const worker = startProgram('main.ts', { environment: environment({ SOROLANE_ROLES: 'worker' }) });
    await worker.says(/"msg":"started"/);
    expect(await healthOf(url)).toMatchObject({
      status: 200,
      body: {
        success: true,
        data: {
          aliveWorkers: 1,
          workers: [{ status: 'running', alive: true, processedCount: 0, failedCount: 0 }],
        },
      },
    });

    worker.child.kill('SIGTERM');
    expect(await worker.ended).toMatchObject({ code: 0 });
    expect(await healthOf(url)).toMatchObject({
      status: 503,
      body: { data: { workers: [{ status: 'stopped', alive: false }] } },
    });

    api.child.kill('SIGINT');
    const ended = await api.ended;
    expect(ended.code).toBe(0);
    expect(ended.stdout.trim().split('\n').at(-1)).toContain('"msg":"stopped"');
  });

  test('while the database is away the health route answers 503 quickly, and all is well again by itself', async () => {
    const proxy = await FaultyProxy.before(database.uri);
    const all = startProgram('main.ts', {
      environment: environment({ MONGODB_URI: proxy.uri, SOROLANE_ROLES: 'api,worker' }),
    });
    const url = await urlOf(all);
    expect((await healthOf(url)).status).toBe(200);

    proxy.down();
    const askedAt = performance.now();
    const away = await healthOf(url);
    expect(away.status).toBe(503);
    expect(away.body.data.problem).toContain('could not be asked');
    expect(performance.now() - askedAt).toBeLessThan(5000);
    expect((await fetch(`${url}/api/v1/live`)).status).toBe(200);
    expect((await fetch(`${url}/api/v1/ready`)).status).toBe(503);

    proxy.up();
    while ((await healthOf(url)).status !== 200);
    expect((await fetch(`${url}/api/v1/ready`)).status).toBe(200);
    all.child.kill('SIGTERM');
    expect((await all.ended).code).toBe(0);
    await proxy.close();
  });

  test('a signal that comes while it starts is not lost, and ends it in order', async () => {
    const early = startProgram('main.ts', { environment: environment({ LOG_LEVEL: 'trace' }) });
    await early.says(/leading event ingestion|"msg":"started"/);
    early.child.kill('SIGTERM');
    expect(await early.ended).toMatchObject({ code: 0 });
  });

  test('a port in use ends it with 1 and says so', async () => {
    const first = startProgram('main.ts', { environment: environment({ SOROLANE_ROLES: 'api' }) });
    const port = new URL(await urlOf(first)).port;
    const second = await startProgram('main.ts', {
      environment: environment({ SOROLANE_ROLES: 'api', PORT: port }),
    }).ended;
    expect(second.code).toBe(1);
    expect(second.stderr).toContain('EADDRINUSE');
    expect(second.stderr).toContain('(PORT)');
    const third = await startProgram('main.ts', {
      environment: environment({ SOROLANE_ROLES: 'worker', OPERATIONS_PORT: port }),
    }).ended;
    expect(third.code).toBe(1);
    expect(third.stderr).toContain('(OPERATIONS_PORT)');
  });

  test('a request that is slow to end does not keep the worker from draining', async () => {
    const all = startProgram('main.ts', { environment: environment({ SOROLANE_ROLES: 'api,worker' }) });
    const { port } = new URL(await urlOf(all));
    const caller = connect(Number(port), '127.0.0.1');
    caller.write(
      'POST /api/v1/verification/requests HTTP/1.1\r\nhost: x\r\nx-api-key: key-for-tests-0123456789\r\n',
    );
    caller.write('content-type: application/json\r\ncontent-length: 100\r\n\r\n{');
    const heartbeats = database.connection.collection('workerHeartbeats');
    const { workerId } = (await heartbeats.findOne({ status: 'running' }, { sort: { startedAt: -1 } }))!;
    // The server has the request in hand once it answers another one of the same moment.
    await fetch(`http://127.0.0.1:${port}/api/v1/live`);

    all.child.kill('SIGTERM');
    await until(
      'the worker stops',
      async () => (await heartbeats.findOne({ workerId }))?.['status'] === 'stopped',
    );
    expect(all.child.exitCode).toBeNull();
    caller.destroy();
    expect((await all.ended).code).toBe(0);
  });
});
