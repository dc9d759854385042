import { variable } from './variables';

/** The HTTP API. */
export const httpSettings = {
  HOST: variable.text('0.0.0.0', 'Address the API listens on.'),
  PORT: variable.count(4000, 'Port the API listens on; 0 takes a free one.', { max: 65_535 }),
  API_KEYS: variable.list(
    'Keys that may change things (header x-api-key), 16 characters or more each. Required in production where the api role runs; elsewhere, without one, every mutation is refused.',
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
