import { Command, InvalidArgumentError, Option } from 'commander';
import { wholeNumber as whole } from '../../platform/command-line';

export interface DemoOptions {
  requests: number;
  reject: number;
  raffles: number;
  spike: number;
  processes: number;
  lanes: number;
  kill: boolean;
  once: boolean;
  json: boolean;
  keepLogs: boolean;
  seed: number;
  faultRate: number;
  ledgerMs: number;
  port: number;
  timeoutS: number;
}

const DEFAULT_REJECT = 2;

function rate(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !(value >= 0 && value <= 0.9))
    throw new InvalidArgumentError('expected a number from 0 to 0.9');
  return value;
}

export function parseDemoOptions(argv: readonly string[]): DemoOptions {
  const command = new Command('demo')
    .description(
      'Starts a database, a simulated Soroban network with an IPFS gateway, an API and worker processes, sends requests through ' +
        'the whole line and tells what came of them. Stays up until Ctrl-C, unless --once.',
    )
    .option(
      '--requests <n>',
      'verification requests to send, those to be rejected among them',
      whole(0, 100_000),
      12,
    )
    .option(
      '--reject <n>',
      'how many of them have media that do not match their manifest (default: 2; 0 where there are only one or two)',
      whole(0, 100_000),
    )
    .option('--raffles <n>', 'raffles that ask for randomness beside them', whole(0, 100_000), 0)
    .option(
      '--spike <n>',
      'events of another contract that come all at once, to show the buffer at work',
      whole(0, 1_000_000),
      0,
    )
    .option('--processes <n>', 'worker processes', whole(1, 32), 2)
    .option('--lanes <n>', 'lanes in each worker process', whole(1, 64), 3)
    .option('--kill', 'SIGKILL a worker in the middle of the work and start another in its place', false)
    .option(
      '--once',
      'end when the work is done: exit code 0 only if every valid request was minted exactly once',
      false,
    )
    .option(
      '--json',
      'print the summary as one JSON object on the last line (progress goes to stderr)',
      false,
    )
    .option('--keep-logs', 'keep the logs of a demo that went well; those of others are kept anyway', false)
    .option('--seed <n>', 'makes whatever is random here repeatable', whole(0, 2 ** 31 - 1), 1)
    .option(
      '--fault-rate <p>',
      'share of the calls to every RPC and IPFS endpoint that fail in one way or another',
      rate,
      0,
    )
    .option('--ledger-ms <n>', 'milliseconds between two ledgers', whole(100, 60_000), 1000)
    .option('--port <n>', 'port of the API; 0 takes a free one', whole(0, 65_535), 0)
    .addOption(
      new Option('--timeout-s <n>', 'give up when the work is not done after so many seconds')
        .argParser(whole(1, 86_400))
        .default(600),
    )
    .addHelpText(
      'after',
      '\nThe database is the one MONGODB_URI names, else a real mongod (PATH, cache or download), else the embedded engine.' +
        '\nThe last line of --json: {requests, minted, duplicates, rejected, deadLettered, stuck,\n raffles, rafflesDelivered, spike, spikeHandled, engine, seconds}.' +
        '\nExit codes: 0 all well, 1 something was lost, doubled, stuck or failed to start.',
    )
    .showHelpAfterError('(--help explains each option)');
  const options = command.parse(argv).opts<Omit<DemoOptions, 'reject'> & { reject?: number }>();
  const { requests, reject = requests > DEFAULT_REJECT ? DEFAULT_REJECT : 0 } = options;
  if (reject > requests) command.error(`error: --reject ${reject} is more than --requests ${requests}`);
  return { ...options, reject };
}
