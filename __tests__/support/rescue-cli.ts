import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { CommanderError } from 'commander';
import { rescueCommand } from '../../src/cli/rescue';
import type { RandomnessNetwork } from './randomness-network';

export interface Ended {
  exitCode: number;
  stdout: string;
  stderr: string;
}

export interface RescueCli {
  /** As from a shell. */
  shell(...args: string[]): Promise<Ended>;
  /** The same in this process, which saves the start of one. */
  rescue(...args: string[]): Promise<Ended>;
}

/** The command on a network; `more` are variables beside those that it needs. */
export function rescueCli(network: RandomnessNetwork, more: Record<string, string> = {}): RescueCli {
  const facts = network.simnet.facts();
  const environment = {
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
    ...more,
  };
  return {
    shell: async (...args) => {
      const child = spawn(process.execPath, ['--import', 'tsx', 'src/cli/rescue.ts', ...args], {
        env: { PATH: process.env['PATH'], ...environment },
      });
      const [stdout, stderr, [exitCode]] = await Promise.all([
        text(child.stdout),
        text(child.stderr),
        once(child, 'close') as Promise<[number]>,
      ]);
      return { exitCode, stdout, stderr };
    },
    rescue: (...args) => inThisProcess(args, environment),
  };
}

const exitCodeNow = (): number => Number(process.exitCode ?? 0);

async function inThisProcess(args: string[], environment: Record<string, string>): Promise<Ended> {
  const written = { stdout: '', stderr: '' };
  const spies = (['stdout', 'stderr'] as const).map((stream) =>
    jest.spyOn(process[stream], 'write').mockImplementation((chunk) => {
      written[stream] += String(chunk);
      return true;
    }),
  );
  const before = { env: process.env, exitCode: process.exitCode };
  process.env = { ...process.env, ...environment };
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
