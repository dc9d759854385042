import type { Logger } from '../logger';

/**
 * Variables that earlier oracle services read and this one doesn't. Whoever moves over brings them along, and one that is
 * silently left unread would have an operator believe in a setting that isn't there.
 */
export interface SupersededSetting {
  name: string;
  /** What to set in its place, or why there is nothing to set. */
  instead: string;
  /** Lower-case values that ask for nothing but what happens anyway. */
  harmless?: readonly string[];
  /** Going on would mean less protection than the variable asks for, so any other value stops the start. */
  stops?: boolean;
  /** Hosting platforms set it by themselves, so that its presence says nothing. */
  isAmbient?: boolean;
}

const all = (names: readonly string[], instead: string): SupersededSetting[] =>
  names.map((name) => ({ name, instead }));

const ONE_ORACLE = 'not supported: one oracle answers, and no peers are asked';
const NO_KEY_SERVICE = 'not supported: keys come from ORACLE_SECRET_KEY and STELLAR_ORACLE_SECRET_KEY';
const NO_ALERTS = 'not supported: let your monitoring watch /metrics';

export const supersededSettings: readonly SupersededSetting[] = [
  ...all(['SOROBAN_RPC_URL', 'SOROBAN_RPC_FALLBACK_URLS', 'STELLAR_RPC_URL'], 'use SOROBAN_RPC_URLS'),
  ...all(['NETWORK_PASSPHRASE'], 'use STELLAR_NETWORK_PASSPHRASE'),
  ...all(['HORIZON_URL'], 'not needed: everything is read from Soroban RPC'),
  ...all(['FACTORY_CONTRACT_ID'], 'use RAFFLE_FACTORY_CONTRACT_ID'),
  ...all(['ORACLE_ADDRESS'], 'not needed: it follows from the keys'),

  ...all(['ORACLE_PRIVATE_KEY'], 'use ORACLE_SECRET_KEY'),
  { name: 'KEY_PROVIDER', instead: NO_KEY_SERVICE, harmless: ['env'], stops: true },
  { name: 'AWS_REGION', instead: NO_KEY_SERVICE, isAmbient: true },
  ...all(
    [
      'AWS_KMS_KEY_ID',
      'GCP_PROJECT_ID',
      'GCP_LOCATION_ID',
      'GCP_KEY_RING_ID',
      'GCP_KEY_ID',
      'GCP_KEY_VERSION',
    ],
    NO_KEY_SERVICE,
  ),

  { name: 'ORACLE_MODE', instead: ONE_ORACLE, harmless: ['single'], stops: true },
  { name: 'MULTI_ORACLE_ENABLED', instead: ONE_ORACLE, harmless: ['false', '0'], stops: true },
  ...all(
    [
      'MULTI_ORACLE_THRESHOLD',
      'ORACLE_CONSENSUS_THRESHOLD',
      'ORACLE_REGISTRY',
      'ORACLE_PEERS',
      'LOCAL_ORACLE_ID',
      'ORACLE_SECRETS',
      'ORACLE_MULTI_TIMEOUT_MS',
      'ORACLE_CONSENSUS_TIMEOUT_MS',
    ],
    ONE_ORACLE,
  ),

  ...all(['REDIS_HOST', 'REDIS_PORT'], 'not needed: the queue lives in the database of MONGODB_URI'),
  ...all(
    ['SUPABASE_URL', 'SUPABASE_SERVICE_ROLE_KEY', 'SUPABASE_ANON_KEY'],
    'not needed: jobs and the audit trail live in the database of MONGODB_URI',
  ),

  ...all(['LOW_STAKES_THRESHOLD_XLM'], 'use VRF_THRESHOLD_XLM'),
  ...all(['ORACLE_MIN_FEE_STROOPS'], 'not needed: bids start from what the network was paid lately'),
  ...all(['ORACLE_MAX_FEE_STROOPS'], 'use STELLAR_FEE_CAP_STROOPS and STELLAR_URGENT_FEE_CAP_STROOPS'),
  ...all(['TX_SUBMIT_MAX_FEE_BUMP'], 'use STELLAR_FEE_CAP_STROOPS and STELLAR_URGENT_FEE_CAP_STROOPS'),
  ...all(['TX_SUBMIT_MAX_ATTEMPTS'], 'use QUEUE_MAX_RETRIES: there is one layer of retries'),
  ...all(['TX_SUBMIT_INITIAL_BACKOFF_MS'], 'use QUEUE_INITIAL_BACKOFF_MS: there is one layer of retries'),
  ...all(['ORACLE_CB_FAILURE_THRESHOLD'], 'use STELLAR_RPC_FAILURE_THRESHOLD'),
  ...all(['ORACLE_CB_RESET_TIMEOUT_MS'], 'use STELLAR_RPC_COOLDOWN_MS'),

  ...all(
    ['EVENT_LISTENER_INITIAL_RETRY_DELAY', 'EVENT_LISTENER_MAX_RETRY_DELAY'],
    'not needed: the chain is read every EVENT_INGESTION_POLL_INTERVAL_MS',
  ),
  ...all(
    ['EVENT_LISTENER_CURSOR_PATH', 'ORACLE_CHECKPOINT_PATH'],
    'use EVENT_QUEUE_PATH: the position is kept with the events',
  ),
  ...all(['POLL_INTERVAL_MS'], 'use EVENT_INGESTION_POLL_INTERVAL_MS'),
  {
    name: 'ORACLE_DRAW_REQUEST_REPLAY',
    instead: 'not supported: operators send single requests back to work (npm run oracle:rescue)',
    harmless: ['false', '0'],
  },

  ...all(['HEARTBEAT_INTERVAL_MS'], 'use VERIFICATION_WORKER_HEARTBEAT_INTERVAL_MS'),
  ...all(['HEARTBEAT_ALERT_TIMEOUT_MS'], 'use WORKER_HEARTBEAT_STALE_MS'),
  ...all(['ORACLE_ADMIN_API_KEY'], 'use API_KEYS'),
  ...all(
    [
      'DLQ_DEPTH_ALERT_THRESHOLD',
      'TX_SUBMIT_ALERT_WEBHOOK_URL',
      'ALERT_WEBHOOK_URL',
      'PAGERDUTY_ROUTING_KEY',
      'OPSGENIE_API_KEY',
      'ALERT_FAILURE_THRESHOLD',
      'ALERT_RATE_LIMIT_MS',
      'ALERT_QUEUE_DEPTH_LIMIT',
      'ALERT_QUEUE_AGE_LIMIT_MS',
      'ALERT_RPC_UNREACHABLE_THRESHOLD',
    ],
    NO_ALERTS,
  ),
  { name: 'ALERTING_PROVIDER', instead: NO_ALERTS, harmless: ['none'] },
];

export interface UnreadSetting {
  variable: string;
  problem: string;
}

/** Those that are set, by what they mean for the start. Values are never repeated: some are secrets. */
export function supersededIn(environment: Record<string, string | undefined>): {
  stopping: UnreadSetting[];
  warnings: UnreadSetting[];
} {
  const stopping: UnreadSetting[] = [];
  const warnings: UnreadSetting[] = [];
  for (const { name, instead, harmless = [], stops = false, isAmbient = false } of supersededSettings) {
    const value = environment[name]?.trim().toLowerCase() ?? '';
    if (value === '' || isAmbient || harmless.includes(value)) continue;
    if (stops) stopping.push({ variable: name, problem: `${instead}; unset it to start without` });
    else warnings.push({ variable: name, problem: instead });
  }
  return { stopping, warnings };
}

export function warnOfUnread(logger: Logger, unread: readonly UnreadSetting[]): void {
  for (const { variable, problem } of unread) {
    logger.warn({ variable }, `${variable} is set, but nothing reads it (${problem})`);
  }
}
