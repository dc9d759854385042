import { Writable } from 'node:stream';
import { createLogger, type Logger } from '../../src/platform/logger';

export interface CapturedLog {
  logger: Logger;
  /** What was logged so far, as text. */
  text(): string;
  /** The same, a parsed object each line. */
  lines(): Record<string, unknown>[];
}

/** A logger of the real kind whose lines can be looked at. */
export function captureLogger(secrets: string[] = []): CapturedLog {
  const chunks: string[] = [];
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk.toString());
      done();
    },
  });
  const text = (): string => chunks.join('');
  return {
    logger: createLogger({ level: 'trace', secrets, destination }),
    text,
    lines: () =>
      text()
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as Record<string, unknown>),
  };
}
