import type { Config } from '../config';

/** A rule that ties variables together. */
export interface CrossCheck {
  /** The report names the first. */
  variables: readonly (keyof Config)[];
  /** Null when it holds. */
  problem(config: Config): string | null;
}

export const crossChecks: readonly CrossCheck[] = [
  {
    variables: ['API_KEYS', 'SOROLANE_ROLES', 'NODE_ENV'],
    problem: ({ API_KEYS, SOROLANE_ROLES, NODE_ENV }) =>
      NODE_ENV === 'production' && SOROLANE_ROLES.includes('api') && API_KEYS.length === 0
        ? 'is required where the api role runs: expected one or more keys of 16 or more characters'
        : null,
  },
];
