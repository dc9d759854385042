import { variable } from './variables';

/** What every process of the house needs, whatever its role. */
export const baseSettings = {
  NODE_ENV: variable.choice(
    ['production', 'development', 'test'],
    'production',
    'Only strictness depends on it (plain-http endpoints are refused in production); never behaviour.',
  ),
  LOG_LEVEL: variable.choice(
    ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'],
    'info',
    'Lowest level that is logged. Lines are JSON on stdout.',
  ),
  SOROLANE_ROLES: variable.list('What this process does: api, worker, ingester. Several with commas.', {
    item: /^(api|worker|ingester)$/,
    expected: 'api, worker, ingester',
    fallback: ['api', 'worker', 'ingester'],
  }),
  MONGODB_URI: variable.pattern(
    /^mongodb(\+srv)?:\/\/[^\s/]+\/[^\s/?]+(\?\S*)?$/,
    'a mongodb:// or mongodb+srv:// connection string with the name of the database',
    'The database that all processes share, its name included: mongodb://host:27017/sorolane.',
    { secret: true },
  ),
  MONGODB_CONNECT_TIMEOUT_MS: variable.durationMs(
    10_000,
    'How long the start waits for the database before it gives up with exit code 1.',
  ),
} as const;
