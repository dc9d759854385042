import pino, { type DestinationStream, type Logger as PinoLogger } from 'pino';

export type Logger = PinoLogger;

export interface LoggerOptions {
  level: string;
  /** Every line carries it: which process of the house speaks. */
  role?: string;
  /** Values that must never be printed, wherever in a line they turn up (API keys, secrets from the configuration). */
  secrets?: readonly string[];
  destination?: DestinationStream;
}

const CENSORED = '[redacted]';
/** A Stellar secret seed in strkey form. Matched by shape, so that one we were never told of is caught as well. */
const STELLAR_SECRET = /\bS[A-Z2-7]{55}\b/g;
/** user:password@ inside any URL. */
const URL_CREDENTIALS = /(\b[a-z][a-z0-9+.-]*:\/\/)[^/\s"@]+@/gi;
const MIN_SECRET_LENGTH = 6;

/**
 * JSON lines on stdout. Secrets are cut from the finished line rather than by field name: an error message or a nested
 * cause that quotes a connection string is caught as surely as a field called `password`.
 */
export function createLogger(options: LoggerOptions): Logger {
  const censor = makeCensor(options.secrets ?? []);
  return pino(
    {
      level: options.level,
      base: options.role === undefined ? null : { role: options.role, pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: {
        paths: ['req.headers.authorization', 'req.headers["x-api-key"]', 'req.headers.cookie'],
        censor: CENSORED,
      },
      hooks: { streamWrite: censor },
    },
    options.destination ?? pino.destination({ dest: 1, sync: true }),
  );
}

/** A function that replaces each of `secrets`, Stellar seeds and URL credentials in a text. */
export function makeCensor(secrets: readonly string[]): (text: string) => string {
  const known = [...new Set(secrets)]
    .filter((secret) => secret.length >= MIN_SECRET_LENGTH)
    .flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1)])
    .sort((a, b) => b.length - a.length);
  return (text) => {
    let censored = text;
    for (const secret of known) censored = censored.replaceAll(secret, CENSORED);
    return censored.replace(STELLAR_SECRET, CENSORED).replace(URL_CREDENTIALS, `$1${CENSORED}@`);
  };
}

/** For tests and embedding: a logger that says nothing. */
export function silentLogger(): Logger {
  return pino({ level: 'silent' });
}
