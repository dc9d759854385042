import { once } from 'node:events';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import path from 'node:path';
import mongoose from 'mongoose';
import { testServerUri } from '../support/database';
import { killPrograms, startProgram, type Ended } from '../support/program';
import { until } from '../support/worker-fixture';

const lastLine = ({ stdout }: Ended): unknown => JSON.parse(stdout.trim().split('\n').at(-1)!);

/** Quick ledgers; everything else as a user runs it: real processes, a simulated network, the database of this run. */
const runDemo = (...options: string[]): Promise<Ended> =>
  startProgram('cli/demo.ts', {
    arguments: ['--once', '--json', '--ledger-ms', '200', ...options],
    environment: { TEST_MONGODB_URI: testServerUri() },
  }).ended;

/** Names of the databases that demos have made on the server of this run. */
async function demoDatabases(): Promise<string[]> {
  const client = await mongoose.createConnection(testServerUri()).asPromise();
  const { databases } = await client.listDatabases();
  await client.close();
  return databases.map(({ name }) => name).filter((name) => name.startsWith('sorolane_demo_'));
}

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

describe('npm run demo', () => {
  afterEach(killPrograms);

  test('mints every valid request once, rejects the others, and says so in one JSON object', async () => {
    const ended = await runDemo('--requests', '10', '--reject', '2', '--processes', '2', '--lanes', '3');
    expect(lastLine(ended)).toEqual({
      requests: 10,
      minted: 8,
      duplicates: 0,
      rejected: 2,
      deadLettered: 0,
      stuck: 0,
      raffles: 0,
      rafflesDelivered: 0,
      spike: 0,
      spikeHandled: 0,
      engine: 'configured',
      seconds: expect.any(Number) as number,
    });
    expect(ended.code).toBe(0);
  }, 60_000);

  test('a worker that is killed and a network that fails every third call change no number', async () => {
    const ended = await runDemo(
      '--requests',
      '10',
      '--reject',
      '2',
      '--kill',
      '--fault-rate',
      '0.3',
      '--raffles',
      '4',
      '--spike',
      '5000',
      '--seed',
      '11',
    );
    expect(lastLine(ended)).toMatchObject({
      requests: 10,
      minted: 8,
      duplicates: 0,
      rejected: 2,
      deadLettered: 0,
      stuck: 0,
      raffles: 4,
      rafflesDelivered: 4,
    });
    expect(ended.code).toBe(0);
  }, 120_000);

  test('Ctrl-C in a terminal ends it in order, its processes drained and their database gone', async () => {
    const before = await demoDatabases();
    const demo = startProgram('cli/demo.ts', {
      arguments: [
        ...['--requests', '2', '--reject', '0', '--processes', '1', '--ledger-ms', '200'],
        '--keep-logs',
      ],
      environment: { TEST_MONGODB_URI: testServerUri() },
      ownGroup: true,
    });
    await demo.says(/Ctrl-C stops everything/);
    const [, logFolder] = await demo.says(/^Logs:\s+(\S+)$/m);
    const log = (name: string): string => readFileSync(path.join(logFolder!, `${name}.log`), 'utf8');
    // As a terminal does it: to the program and whatever it started in its group.
    process.kill(-demo.child.pid!, 'SIGINT');
    expect((await demo.ended).code).toBe(0);
    for (const name of ['api', 'worker-1']) {
      expect(log(name)).toContain('stopping: draining');
      expect(log(name)).not.toContain('second signal');
    }
    expect(await demoDatabases()).toEqual(before);
  }, 60_000);

  test('removes its logs when all went well, and keeps and names them when it did not', async () => {
    const small = ['--once', '--processes', '1', '--ledger-ms', '200', '--requests', '1'];
    const demo = (...more: string[]) =>
      startProgram('cli/demo.ts', {
        arguments: [...small, ...more],
        environment: { TEST_MONGODB_URI: testServerUri() },
      }).ended;
    const folderOf = ({ stdout }: Ended): string => /^Logs:\s+(\S+)$/m.exec(stdout)![1]!;

    const well = await demo('--reject', '1');
    expect([well.code, existsSync(folderOf(well))]).toEqual([0, false]);
    expect(well.stdout).toContain('Every request was rejected, as its media do not match its manifest.');

    // No certificate can be on a ledger before the second one has closed.
    const badly = await demo('--timeout-s', '1', '--ledger-ms', '4000');
    expect([badly.code, existsSync(folderOf(badly))]).toEqual([1, true]);
    expect(badly.stdout).toContain(`The logs are kept in ${folderOf(badly)}`);
    rmSync(folderOf(badly), { recursive: true });
  }, 90_000);

  test('a port in use is told before anything is started', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    const asked = jest.fn();
    taken.on('connection', asked);
    const { code, stdout, stderr } = await runDemo('--port', String(port));
    expect({ code, stdout, stderr }).toEqual({
      code: 1,
      stdout: '',
      stderr: `Port ${port} is in use; give another with --port.\n`,
    });
    expect(asked).not.toHaveBeenCalled();
    taken.close();
  });

  test('its processes go with it when it dies', async () => {
    const demo = startProgram('cli/demo.ts', {
      arguments: ['--requests', '0', '--reject', '0', '--processes', '1'],
      environment: { TEST_MONGODB_URI: testServerUri() },
    });
    await demo.says(/Ctrl-C stops everything/);
    const [, logFolder] = await demo.says(/^Logs:\s+(\S+)$/m);
    const pids = ['api', 'worker-1'].map((name) => {
      const text = readFileSync(path.join(logFolder!, `${name}.log`), 'utf8');
      return Number(/"pid":(\d+)/.exec(text)?.[1]);
    });
    demo.child.kill('SIGKILL');
    await until('its processes go', () => pids.every((pid) => !isAlive(pid)));
  }, 60_000);

  test.each([
    [['--requests', 'many'], 'expected a whole number'],
    [['--requests', '2', '--reject', '3'], '--reject 3 is more than --requests 2'],
    [['--no-such-thing'], 'unknown option'],
  ])('refuses %j with a reason and starts nothing', async (options, reason) => {
    const { code, stdout, stderr } = await runDemo(...options);
    expect(code).toBe(1);
    expect(stderr).toContain(reason);
    expect(stdout).toBe('');
  });
});
