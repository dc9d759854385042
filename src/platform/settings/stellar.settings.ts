import type { z } from 'zod';
import { strkeyForms } from './strkey';
import { variable } from './variables';

const percentiles = [
  'p10',
  'p20',
  'p30',
  'p40',
  'p50',
  'p60',
  'p70',
  'p80',
  'p90',
  'p95',
  'p99',
  'max',
] as const;
const rpcUrlsAbout =
  'Soroban RPC endpoints in order of preference, with commas between. Plain http only on loopback in production.';
const contract = (what: string) => variable.strkey(strkeyForms.contractId, what);

/** The network, our accounts and contracts on it, and how transactions are made. */
export const stellarSettings = {
  STELLAR_NETWORK_PASSPHRASE: variable.pattern(
    /\S/,
    "the network's passphrase",
    'Which network this is. An endpoint that serves another one is not used.',
  ),
  SOROBAN_RPC_URLS: variable
    .list(rpcUrlsAbout, { item: /^https?:\/\/[^\s,]+$/, expected: 'http(s) URLs', secret: true })
    .refine((urls) => urls.length > 0, {
      error: 'is required: expected a comma-separated list of http(s) URLs',
    })
    .meta({ about: rpcUrlsAbout, secret: true }),
  STELLAR_ORACLE_SECRET_KEY: variable.strkey(
    strkeyForms.secretKey,
    'The oracle account: contracts ask for its authority, and attestations are signed with its key.',
    { secret: true },
  ),
  STELLAR_CHANNEL_SECRETS: variable.strkeyList(
    strkeyForms.secretKey,
    'Seeds of accounts whose sequence numbers carry transactions side by side. Without any, the oracle account carries one at a time.',
    { secret: true },
  ),
  STELLAR_CHANNEL_COUNT: variable.count(
    0,
    'Where STELLAR_CHANNEL_SECRETS is empty: so many channel accounts are derived from the oracle seed, and created from its balance where missing.',
    { max: 100 },
  ),
  STELLAR_CHANNEL_BALANCE_XLM: variable.count(
    10,
    'What a derived channel account is created with. It pays fees from it.',
    {
      min: 2,
    },
  ),
  STELLAR_REGISTRY_CONTRACT_ID: contract('The registry of TEE hashes and providers.'),
  STELLAR_ORACLE_CONTRACT_ID: contract('The oracle contract, which lists the providers.'),
  STELLAR_PROVENANCE_CONTRACT_ID: contract('The provenance contract, which mints certificates.'),
  STELLAR_TX_VALIDITY_MS: variable.durationMs(
    60_000,
    'How long a transaction may land after it was built. Shorter ends doubt sooner, longer survives congestion.',
    { min: 10_000 },
  ),
  STELLAR_TX_POLL_INTERVAL_MS: variable.durationMs(
    2_000,
    'Pause between two looks for a transaction; it grows up to threefold.',
  ),
  STELLAR_TX_CONFIRMATION_TIMEOUT_MS: variable.durationMs(
    120_000,
    'How long one try waits for a transaction before it leaves it to the next. Must exceed STELLAR_TX_VALIDITY_MS.',
  ),
  STELLAR_CHANNEL_WAIT_MS: variable.durationMs(
    30_000,
    'How long a transaction waits for a free source account before its job goes back to the queue, at no cost. Less than QUEUE_SUBMISSION_TIMEOUT_MS.',
  ),
  STELLAR_RECOVERY_INTERVAL_MS: variable.durationMs(
    30_000,
    'How often a process looks after transactions that nobody follows any more.',
  ),
  STELLAR_RPC_TIMEOUT_MS: variable.durationMs(10_000, 'Deadline of one call to one endpoint.'),
  STELLAR_RPC_FAILURE_THRESHOLD: variable.count(3, 'Transport faults in a row that bench an endpoint.', {
    min: 1,
  }),
  STELLAR_RPC_COOLDOWN_MS: variable.durationMs(
    30_000,
    'How long an endpoint is benched before it is probed.',
  ),
  STELLAR_RPC_MAX_LAG_LEDGERS: variable.count(
    6,
    'A benched endpoint that is further behind the others than this stays benched.',
  ),
  STELLAR_FEE_PERCENTILE: variable.choice(
    percentiles,
    'p90',
    'Which of the inclusion fees paid lately an ordinary transaction starts from.',
  ),
  STELLAR_URGENT_FEE_PERCENTILE: variable.choice(percentiles, 'p99', 'The same for an urgent transaction.'),
  STELLAR_FEE_MARGIN: variable.decimal(1.2, 'Times the percentile: 1.2 bids a fifth more.', {
    min: 1,
    max: 100,
  }),
  STELLAR_FALLBACK_FEE_STROOPS: variable.count(
    10_000,
    'Bid per operation when the network gives no figures.',
    {
      min: 100,
    },
  ),
  STELLAR_FEE_CAP_STROOPS: variable.count(
    1_000_000,
    'Highest bid per operation of an ordinary transaction, bumps included.',
    {
      min: 100,
    },
  ),
  STELLAR_URGENT_FEE_CAP_STROOPS: variable.count(10_000_000, 'The same for an urgent transaction.', {
    min: 100,
  }),
  STELLAR_RESOURCE_FEE_CAP_STROOPS: variable.count(
    100_000_000,
    'Highest resource fee of one transaction, as its simulation asks for it; one that would cost more is not sent.',
    { min: 100 },
  ),
  STELLAR_BUMP_AFTER_LEDGERS: variable.count(
    5,
    'Ledgers that a transaction may stay out before its fee is bumped. Within 4 it is still queued, and only ten times the bid replaces it.',
    { min: 1 },
  ),
} as const;

export type StellarSettings = Readonly<z.infer<z.ZodObject<typeof stellarSettings>>>;

type Checked = StellarSettings & { NODE_ENV: 'production' | 'development' | 'test' };

/** Rules between these variables, for the configuration's cross-checks. */
export const stellarChecks = [
  {
    variables: ['STELLAR_TX_CONFIRMATION_TIMEOUT_MS', 'STELLAR_TX_VALIDITY_MS'],
    problem: (config: Checked): string | null =>
      config.STELLAR_TX_CONFIRMATION_TIMEOUT_MS > config.STELLAR_TX_VALIDITY_MS
        ? null
        : 'expected more than STELLAR_TX_VALIDITY_MS: a try that gives up earlier never learns the end of its transaction',
  },
  {
    variables: ['SOROBAN_RPC_URLS', 'NODE_ENV'],
    problem: (config: Checked): string | null =>
      config.NODE_ENV === 'production' && config.SOROBAN_RPC_URLS.some(isPlainHttpAbroad)
        ? 'expected https:// for every endpoint that is not on loopback'
        : null,
  },
] as const;

function isPlainHttpAbroad(text: string): boolean {
  const url = URL.parse(text);
  if (url?.protocol !== 'http:') return false;
  return !/^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(url.hostname);
}
