import { Command, InvalidArgumentError } from 'commander';
import { z } from 'zod';
import { wholeNumber } from '../platform/command-line';
import { parseFaultPlan } from './fault-rules';
import type { FaultPlan } from './fault-rules';
import { defaultNetworkPassphrase, simnetOptionsSchema } from './options';
import type { SimnetFacts } from './simnet';
import { startSimnet } from './simnet';

const MAX_INT = 2 ** 31 - 1;

const faultPlan = (text: string): FaultPlan => {
  try {
    return parseFaultPlan(text);
  } catch (error) {
    const reason = error instanceof z.ZodError ? z.prettifyError(error) : String(error);
    throw new InvalidArgumentError(reason);
  }
};

const faultsHelp = `
Faults:
  A preset:   --faults rate=0.3,seed=7            30 % of all RPC calls fail on their way, repeatably
              --faults rate=0.2,ipfsRate=0.2      the IPFS gateway as well; holdMs=… sets how long timeouts last
  As JSON:    --faults '{"seed":7,"rules":[{"endpoints":[1],"fault":{"kind":"lag","ledgers":5}}]}'
  Per call:   latency, timeoutBefore, timeoutAfter, dropBefore, dropReply, httpStatus, rpcError, unhealthy,
              tryAgainLater, sendError; for the gateway also slowDrip, truncate, wrongBytes
  Standing:   lag, retention, otherHistory, meta, surge
  Each rule:  surface (rpc|ipfs), endpoints, methods, cids, probability, after, times, fault

On the gateway's port:
  Observer:  /observer/facts, certificates, raffle-requests, raffle-deliveries, transactions, events, stats
  Raffles:   curl -d '{"count":3,"prizeLumens":10}' http://127.0.0.1:8001/simnet/raffles
             draws raffles, which ask for randomness; also highPriority, and interface (receive_randomness or
             provide_randomness: each raffle a contract of its own, which the factory tells of)`;

interface CliOptions {
  port: number;
  endpoints: number;
  ledgerMs: number;
  faults?: FaultPlan;
  seed: number;
  meta: number;
  retention: number;
  accounts: number;
  passphrase: string;
  json: boolean;
}

const printFacts = (facts: SimnetFacts): void => {
  console.log('Simulated Soroban network, in memory, on loopback only. Ctrl-C ends it.');
  const lines: [string, string][] = [
    ...facts.rpcUrls.map((url, index): [string, string] => [`RPC ${index}`, url]),
    ['IPFS gateway', `${facts.ipfsUrl}/{cid}`],
    ['Friendbot', `${facts.friendbotUrl}?addr=G…`],
    ['Observer', `${facts.observerUrl}/facts`],
    ['Draw raffles', `curl -d '{"count":3}' ${facts.controlUrl}/raffles`],
    ['Passphrase', facts.networkPassphrase],
    ...Object.entries<string>({ ...facts.contracts }).map(([name, id]): [string, string] => [
      `Contract ${name}`,
      id,
    ]),
    ['Code measurement', facts.teeHash],
    ['Oracle', facts.oraclePublicKey],
    ['Oracle secret', `${facts.oracleSecret}  (worthless anywhere else)`],
    ...facts.fundedSecrets.map((secret, index): [string, string] => [`Funded secret ${index}`, secret]),
  ];
  for (const [name, value] of lines) console.log(`  ${name.padEnd(24)}${value}`);
  console.log('\nFor .env, beside MONGODB_URI and API_KEYS:\n');
  for (const [name, value] of environmentOf(facts)) console.log(`${name}=${value}`);
  console.log('\n# Where each raffle is a contract of its own, instead of RAFFLE_CONTRACT_ID above:');
  for (const [name, value] of instanceEnvironmentOf(facts)) console.log(`# ${name}=${value}`);
};

/** What a process of the house needs to work on this network. */
const environmentOf = (facts: SimnetFacts): [string, string][] => [
  ['STELLAR_NETWORK_PASSPHRASE', facts.networkPassphrase],
  ['SOROBAN_RPC_URLS', facts.rpcUrls.join(',')],
  ['STELLAR_ORACLE_SECRET_KEY', facts.oracleSecret],
  // A transaction in flight needs an account of its own: about as many as lanes.
  ['STELLAR_CHANNEL_COUNT', '8'],
  ['STELLAR_REGISTRY_CONTRACT_ID', facts.contracts.registry],
  ['STELLAR_ORACLE_CONTRACT_ID', facts.contracts.oracle],
  ['STELLAR_PROVENANCE_CONTRACT_ID', facts.contracts.provenance],
  ['RAFFLE_CONTRACT_ID', facts.contracts.raffle],
  ['ORACLE_CODE_MEASUREMENT_HASH', facts.teeHash],
  ['PINATA_GATEWAY_URL', facts.ipfsUrl],
];

const instanceEnvironmentOf = ({ contracts }: SimnetFacts): [string, string][] => [
  ['RAFFLE_CONTRACT_INTERFACE', 'provide_randomness'],
  ['RAFFLE_CONTRACT_ID', contracts.raffleInstance],
  ['RAFFLE_FACTORY_CONTRACT_ID', contracts.raffleFactory],
];

/** Resolves on the first SIGINT or SIGTERM. */
const stopSignal = (): Promise<void> =>
  new Promise((resolve) => {
    process.once('SIGINT', () => resolve());
    process.once('SIGTERM', () => resolve());
  });

const MAX_PORT = 65_535;

const run = async (options: CliOptions): Promise<void> => {
  // The gateway's is the last of the row.
  if (options.port !== 0 && options.port + options.endpoints > MAX_PORT) {
    console.error(
      `The row of ports from ${options.port} ends beyond ${MAX_PORT}; begin it lower with --port.`,
    );
    process.exitCode = 1;
    return;
  }
  const parsed = simnetOptionsSchema.safeParse({
    port: options.port,
    endpoints: options.endpoints,
    ledgerMs: options.ledgerMs,
    ...(options.faults && { faults: options.faults }),
    seed: options.seed,
    metaVersion: options.meta,
    retentionLedgers: options.retention,
    fundedAccounts: options.accounts,
    networkPassphrase: options.passphrase,
  });
  if (!parsed.success) {
    console.error(z.prettifyError(parsed.error));
    process.exitCode = 1;
    return;
  }
  const stopped = stopSignal();
  const net = await startSimnet(parsed.data);
  if (options.json) console.log(JSON.stringify(net.facts()));
  else printFacts(net.facts());
  await stopped;
  await net.stop();
};

function portInUse(error: unknown): string | null {
  if (!(error instanceof Error) || !('code' in error && 'port' in error)) return null;
  return error.code === 'EADDRINUSE'
    ? `Port ${String(error.port)} is in use by another program; give a different row of ports with --port.`
    : null;
}

const program = new Command('simnet')
  .description('A simulated Soroban network: JSON-RPC endpoints over one ledger, and an IPFS gateway.')
  .option(
    '--port <number>',
    'first of a row of ports: endpoints, then the gateway; 0 takes free ones',
    wholeNumber(0, MAX_PORT),
    8000,
  )
  .option('--endpoints <count>', 'JSON-RPC listeners over the one ledger', wholeNumber(1, 16), 1)
  .option(
    '--ledger-ms <ms>',
    'time between ledgers, in milliseconds; 0 closes none',
    wholeNumber(0, 3_600_000),
    1000,
  )
  .option('--faults <plan>', 'what goes wrong: JSON or a preset, see below', faultPlan)
  .option(
    '--seed <number>',
    'names the keys of the accounts; the same seed gives the same keys',
    wholeNumber(0, MAX_INT),
    1,
  )
  .option('--meta <version>', 'version of the transaction result meta: 3 or 4', wholeNumber(3, 4), 4)
  .option('--retention <ledgers>', 'ledgers that the endpoints remember', wholeNumber(1, MAX_INT), 120_960)
  .option('--accounts <count>', 'funded accounts to print the secrets of', wholeNumber(0, 1000), 1)
  .option('--passphrase <text>', 'network passphrase', defaultNetworkPassphrase)
  .option('--json', 'print the facts as one line of JSON', false)
  .showHelpAfterError('(--help explains each option)')
  .addHelpText('after', faultsHelp);

program
  .action((options: CliOptions) => run(options))
  .parseAsync()
  .catch((error: unknown) => {
    console.error(portInUse(error) ?? (error instanceof Error ? error.message : String(error)));
    process.exitCode = 1;
  });
