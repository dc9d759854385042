import { variable } from './variables';

/** The HTTP API, and the port for probes and scrapes. */
export const httpSettings = {
  HOST: variable.text('0.0.0.0', 'Address the API and the operations port listen on.'),
  PORT: variable.count(4000, 'Port the API listens on; 0 takes a free one.', { max: 65_535 }),
  OPERATIONS_PORT: variable.optionalPort(
    'Port for probes and metrics of a process of any role: /health/live, /health/ready, /metrics, and /api/v1/events/health of an ingester. Asks for no key: keep it from the public. Unset for none; 0 takes a free one.',
  ),
  API_KEYS: variable.list(
    'Keys that may change things and read /metrics (header x-api-key), 16 characters or more each. Required in production where the api role runs; elsewhere, without one, every mutation is refused and /metrics is open.',
    {
      secret: true,
      item: /^\S{16,}$/,
      expected: 'keys of 16 or more characters without spaces',
    },
  ),
  CORS_ORIGIN: variable.list('Origins whose browsers may call the API; empty for none.'),
  HTTP_BODY_LIMIT_BYTES: variable.count(65_536, 'Largest request body that is read.', { min: 1024 }),
  HTTP_SHUTDOWN_TIMEOUT_MS: variable.durationMs(
    10_000,
    'How long open requests may take to end on shutdown.',
  ),
} as const;
