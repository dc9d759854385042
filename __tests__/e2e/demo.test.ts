import { testServerUri } from '../support/database';
import { killPrograms, startProgram, type Ended } from '../support/program';

const lastLine = ({ stdout }: Ended): unknown => JSON.parse(stdout.trim().split('\n').at(-1)!);

/** Quick ledgers; everything else as a user runs it: real processes, a simulated network, the database of this run. */
const runDemo = (...options: string[]): Promise<Ended> =>
  startProgram('cli/demo.ts', {
    arguments: ['--once', '--json', '--ledger-ms', '200', ...options],
    environment: { TEST_MONGODB_URI: testServerUri() },
  }).ended;

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
    });
    expect(ended.code).toBe(0);
  }, 120_000);

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
