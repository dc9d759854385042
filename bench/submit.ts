import { fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import path from 'node:path';
import { wholeNumber } from '../src/platform/command-line';
import { pickServer } from '../src/platform/database/pick-server';
import { startSimnet, type Simnet } from '../src/simnet';
import { benchCommand } from './command';
import type { Order, Report } from './submit/order';

const options = benchCommand(
  'submit',
  'How many transactions a ledger confirms: several processes, one set of channel accounts, one simulated network. Every ' +
    "figure is read from the ledger; the processes' own word is checked against it.",
)
  .option('--channels <n>', 'channel accounts', wholeNumber(1, 256), 8)
  .option('--processes <n>', 'worker processes', wholeNumber(1, 32), 2)
  .option('--lanes <n>', 'submissions at once in each process', wholeNumber(1, 256), 8)
  .option('--ledgers <n>', 'ledgers to measure, after the warm-up', wholeNumber(1, 10_000), 20)
  .option('--ledger-ms <n>', 'milliseconds between two ledgers', wholeNumber(10, 60_000), 1_000)
  .option('--poll-ms <n>', 'milliseconds between two looks for a transaction', wholeNumber(1, 60_000), 100)
  .parse()
  .opts<{
    channels: number;
    processes: number;
    lanes: number;
    ledgers: number;
    ledgerMs: number;
    pollMs: number;
    json: boolean;
  }>();

/** The first ledgers create the channel accounts and fill the lanes. */
const WARM_UP_LEDGERS = 4;
const say = (line: string): void => void process.stderr.write(`${line}\n`);

async function main(): Promise<void> {
  const server = await pickServer({ environment: process.env, say });
  const url = new URL(server.uri);
  url.pathname = `/bench_submit_${randomBytes(4).toString('hex')}`;
  const simnet = await startSimnet({ ledgerMs: options.ledgerMs });
  const order: Order = {
    facts: simnet.facts(),
    uri: url.toString(),
    channels: options.channels,
    lanes: options.lanes,
    pollIntervalMs: options.pollMs,
  };
  const workers = Array.from({ length: options.processes }, () =>
    fork(path.join(__dirname, 'submit', 'worker.ts'), {
      execArgv: ['--import', 'tsx'],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    }),
  );
  try {
    await Promise.all(workers.map((worker) => once(worker, 'message')));
    for (const worker of workers) worker.send(order);
    await firstMint(simnet);
    const cpu = process.cpuUsage();
    const from = simnet.latestLedger + WARM_UP_LEDGERS;
    await simnet.waitForLedger(from + options.ledgers);
    const to = simnet.latestLedger;
    const reports = Promise.all(
      workers.map(async (worker) => ((await once(worker, 'message')) as [Report])[0]),
    );
    for (const worker of workers) worker.send('stop');
    const { user, system } = process.cpuUsage(cpu);
    print(
      summary(simnet, await reports, { from, to, networkCpuMs: (user + system) / 1000 }),
      server.description,
    );
  } finally {
    for (const worker of workers) worker.kill('SIGKILL');
    await simnet.stop();
    await server.stop();
  }
}

async function firstMint(simnet: Simnet): Promise<void> {
  while (simnet.observer.certificates().length === 0) await simnet.waitForLedger(simnet.latestLedger + 1);
}

type Summary = ReturnType<typeof summary>;

interface Measured {
  from: number;
  to: number;
  /** Of this process: the simulated network, and the database where it is the embedded one. */
  networkCpuMs: number;
}

function summary(simnet: Simnet, reports: Report[], { from, to, networkCpuMs }: Measured) {
  const stats = simnet.observer.stats();
  const minted = simnet.observer.certificates();
  const perLedger = Array.from(
    { length: to - from },
    (_, index) => stats.includedPerLedger[from + index] ?? 0,
  );
  const confirmed = new Set(reports.flatMap((report) => report.confirmed));
  const times = reports.flatMap((report) => report.confirmationMs).sort((a, b) => a - b);
  const at = (share: number): number => Math.round(times[Math.floor(share * (times.length - 1))] ?? 0);
  const perTransaction = (sum: number): number => Math.round((10 * sum) / confirmed.size) / 10;
  const mean = perLedger.reduce((sum, count) => sum + count, 0) / perLedger.length;
  return {
    channels: options.channels,
    processes: options.processes,
    lanes: options.lanes,
    ledgerMs: options.ledgerMs,
    ledgers: perLedger.length,
    confirmedPerLedger: Math.round(mean * 100) / 100,
    leastInALedger: Math.min(...perLedger),
    confirmed: confirmed.size,
    minted: minted.length,
    mintedTwice: minted.length - new Set(minted.map((one) => one.manifestHash)).size,
    unconfirmed: minted.filter((one) => !confirmed.has(one.txHash)).length,
    badSequences: stats.badSequences,
    tryAgainLater: stats.tryAgainLater,
    sendToConfirmedMs: { p50: at(0.5), p95: at(0.95), p99: at(0.99) },
    rpcCallsPerTransaction: perTransaction(reports.reduce((sum, report) => sum + report.rpcCalls, 0)),
    cpuMsPerTransaction: {
      workers: perTransaction(reports.reduce((sum, report) => sum + report.cpuMs, 0)),
      network: perTransaction(networkCpuMs),
    },
    outcomes: merged(reports.map((report) => report.outcomes)),
    errors: merged(reports.map((report) => report.errors)),
  };
}

function merged(counts: Record<string, number>[]): Record<string, number> {
  const sum: Record<string, number> = {};
  for (const [name, count] of counts.flatMap((one) => Object.entries(one)))
    sum[name] = (sum[name] ?? 0) + count;
  return sum;
}

function print(figures: Summary, database: string): void {
  if (options.json) {
    console.log(JSON.stringify({ ...figures, database }));
    return;
  }
  console.log(`database: ${database}`);
  for (const [name, value] of Object.entries(figures)) {
    console.log(`${name.padEnd(24)}${typeof value === 'object' ? JSON.stringify(value) : String(value)}`);
  }
}

void main();
