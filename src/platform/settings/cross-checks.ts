import type { Config } from '../config';
import { randomnessChecks } from './randomness.settings';
import { stellarChecks } from './stellar.settings';

/** A rule that ties variables together. */
export interface CrossCheck {
  /** The report names the first. */
  variables: readonly (keyof Config)[];
  /** Null when it holds. */
  problem(config: Config): string | null;
}

export const crossChecks: readonly CrossCheck[] = [
  {
    variables: ['SOROLANE_ROLES'],
    problem: ({ SOROLANE_ROLES }) =>
      SOROLANE_ROLES.length === 0
        ? 'expected one or more of api, worker, ingester: a process without a role does nothing'
        : null,
  },
  {
    variables: ['API_KEYS', 'SOROLANE_ROLES', 'NODE_ENV'],
    problem: ({ API_KEYS, SOROLANE_ROLES, NODE_ENV }) =>
      NODE_ENV === 'production' && SOROLANE_ROLES.includes('api') && API_KEYS.length === 0
        ? 'is required where the api role runs: expected one or more keys of 16 or more characters'
        : null,
  },
  {
    variables: ['OPERATIONS_PORT', 'PORT', 'SOROLANE_ROLES'],
    problem: ({ OPERATIONS_PORT, PORT, SOROLANE_ROLES }) =>
      OPERATIONS_PORT === PORT && PORT !== 0 && SOROLANE_ROLES.includes('api')
        ? 'expected another port than PORT, which the API listens on'
        : null,
  },
  {
    variables: ['VERIFICATION_WORKER_LEASE_MS', 'SPV_FETCH_TIMEOUT_MS', 'STELLAR_TX_CONFIRMATION_TIMEOUT_MS'],
    problem: (config) => {
      // Renewals keep a lease alive, but a holder that stops renewing must not be overtaken in the middle of one step.
      const longestStepMs = Math.max(
        2 * config.SPV_FETCH_TIMEOUT_MS,
        config.STELLAR_TX_CONFIRMATION_TIMEOUT_MS,
      );
      return config.VERIFICATION_WORKER_LEASE_MS > longestStepMs
        ? null
        : `expected more than the longest step, ${longestStepMs} ms: the larger of 2 × SPV_FETCH_TIMEOUT_MS (manifest, then media) and STELLAR_TX_CONFIRMATION_TIMEOUT_MS`;
    },
  },
  {
    variables: ['VERIFICATION_WORKER_HEARTBEAT_INTERVAL_MS', 'WORKER_HEARTBEAT_STALE_MS'],
    problem: (config) =>
      config.VERIFICATION_WORKER_HEARTBEAT_INTERVAL_MS < config.WORKER_HEARTBEAT_STALE_MS
        ? null
        : 'expected less than WORKER_HEARTBEAT_STALE_MS: a healthy worker would count as gone between two beats',
  },
  ...randomnessChecks,
  ...stellarChecks,
];
