import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { CommanderError } from 'commander';
import { rescueCommand } from '../../../src/cli/rescue';
import {
  openRandomnessNetwork,
  type NetworkWorker,
  type RandomnessNetwork,
} from '../../support/randomness-network';

let network: RandomnessNetwork;
let worker: NetworkWorker;
let raffle: { raffleId: number; requestId: number };

beforeAll(async () => {
  network = await openRandomnessNetwork({ ledgerMs: 60 });
  worker = await network.openWorker();
  [raffle] = (await network.simnet.actions.drawRaffles([{ prizeLumens: 20 }])) as unknown as [typeof raffle];
  await worker.pipeline.service.submit({
    requestId: String(raffle.requestId),
    raffleId: raffle.raffleId,
    source: 'event',
    requestedAt: new Date(Date.now() - 400_000),
  });
});
afterAll(() => network.close());

interface Ended {
  exitCode: number;
  stdout: string;
  stderr: string;
}

function environment(): Record<string, string> {
  const facts = network.simnet.facts();
  return {
    NODE_ENV: 'test',
    MONGODB_URI: network.uri,
    STELLAR_NETWORK_PASSPHRASE: facts.networkPassphrase,
    SOROBAN_RPC_URLS: facts.rpcUrls.join(','),
    STELLAR_ORACLE_SECRET_KEY: facts.oracleSecret,
    STELLAR_REGISTRY_CONTRACT_ID: facts.contracts.registry,
    STELLAR_ORACLE_CONTRACT_ID: facts.contracts.oracle,
    STELLAR_PROVENANCE_CONTRACT_ID: facts.contracts.provenance,
    ORACLE_CODE_MEASUREMENT_HASH: facts.teeHash,
    RAFFLE_CONTRACT_ID: facts.contracts.raffle,
    STELLAR_TX_POLL_INTERVAL_MS: '40',
  };
}

const exitCodeNow = (): number => Number(process.exitCode ?? 0);

/** As from a shell. */
async function shell(...args: string[]): Promise<Ended> {
  const child = spawn(process.execPath, ['--import', 'tsx', 'src/cli/rescue.ts', ...args], {
    env: { PATH: process.env['PATH'], ...environment() },
  });
  const [stdout, stderr, [exitCode]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number]>,
  ]);
  return { exitCode, stdout, stderr };
}

/** The same in this process, which saves the start of one. */
async function rescue(...args: string[]): Promise<Ended> {
  const written = { stdout: '', stderr: '' };
  const spies = (['stdout', 'stderr'] as const).map((stream) =>
    jest.spyOn(process[stream], 'write').mockImplementation((chunk) => {
      written[stream] += String(chunk);
      return true;
    }),
  );
  const before = { env: process.env, exitCode: process.exitCode };
  process.env = { ...process.env, ...environment() };
  process.exitCode = undefined;
  const command = rescueCommand();
  for (const each of [command, ...command.commands]) each.exitOverride();
  try {
    await command.parseAsync(args, { from: 'user' });
    return { exitCode: exitCodeNow(), ...written };
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return { exitCode: error.exitCode, ...written };
  } finally {
    process.env = before.env;
    process.exitCode = before.exitCode;
    for (const spy of spies) spy.mockRestore();
  }
}
const json = (stdout: string): unknown => JSON.parse(stdout);

it('previews, finds what is stuck, delivers it and keeps the record', async () => {
  const { raffleId, requestId } = raffle;
  const who = ['--operator', 'ops', '--reason', 'the queue is down'];
  const unknown = await shell('--request-id', 'req-123', '--json');
  const noOperator = await rescue('force-submit', String(raffleId), String(requestId), '--execute');
  const preview = await rescue('force-submit', String(raffleId), String(requestId), ...who, '--json');
  const stuck = await rescue('list-stuck', '--json');
  expect(noOperator).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('--operator') as string });
  expect(preview.exitCode).toBe(0);
  expect(json(preview.stdout)).toMatchObject({
    action: 'force-submit',
    executed: false,
    plan: {
      method: 'PRNG',
      contractStatus: 'drawing',
      state: 'queued',
      rpcUrls: network.simnet.rpcUrls,
      feeEstimateStroops: expect.stringMatching(/^[1-9]\d{2,}$/) as string,
      feeProblem: null,
    },
  });
  expect(stuck.exitCode).toBe(2);
  expect(json(stuck.stdout)).toMatchObject({
    stuck: 1,
    draws: [{ requestId: String(requestId), status: 'stuck' }],
  });
  expect(unknown).toMatchObject({
    exitCode: 4,
    stdout: `${JSON.stringify({ error: 'there is no job req-123' })}\n`,
  });
  expect(network.simnet.observer.raffleDeliveries()).toEqual([]);

  const done = await rescue(
    'force-submit',
    String(raffleId),
    String(requestId),
    ...who,
    '--execute',
    '--json',
  );
  expect(done).toMatchObject({ exitCode: 0 });
  expect(json(done.stdout)).toMatchObject({
    executed: true,
    result: { kind: 'done', details: { state: 'confirmed' } },
  });
  expect(network.simnet.observer.raffleDeliveries()).toHaveLength(1);

  const again = await rescue('force-submit', String(raffleId), String(requestId), ...who, '--execute');
  const logs = await rescue('logs', '--raffle', String(raffleId), '--json');
  const chain = await rescue('verify-audit');
  expect(again).toMatchObject({
    exitCode: 3,
    stdout: expect.stringContaining('the raffle is finalized') as string,
  });
  expect(json(logs.stdout)).toMatchObject({
    logs: expect.arrayContaining([
      expect.objectContaining({
        event: 'rescue_force_submit',
        data: expect.objectContaining({
          operator: 'ops',
          reason: 'the queue is down',
          result: 'done',
        }) as object,
      }),
    ]) as object,
  });
  expect(chain).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^intact/) as string });
}, 60_000);
