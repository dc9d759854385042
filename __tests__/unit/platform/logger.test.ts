import { Writable } from 'node:stream';
import { createLogger } from '../../../src/platform/logger';

const SEED = `S${'A'.repeat(55)}`;

function capture(secrets: string[]): { lines: () => string; logger: ReturnType<typeof createLogger> } {
  const chunks: string[] = [];
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk.toString());
      done();
    },
  });
  return { lines: () => chunks.join(''), logger: createLogger({ level: 'trace', secrets, destination }) };
}

describe('logger', () => {
  test.each([
    ['as a field', (log: ReturnType<typeof createLogger>) => log.info({ key: 'top-secret-key-0001' }, 'hello')],
    ['deep in an object', (log) => log.info({ a: { b: [{ c: 'top-secret-key-0001' }] } }, 'hello')],
    ['in the message', (log) => log.info('key top-secret-key-0001 refused')],
    ['in an error and its cause', (log) => log.error({ err: new Error('x', { cause: new Error('top-secret-key-0001') }) }, 'failed')],
    ['in a child', (log) => log.child({ key: 'top-secret-key-0001' }).warn('hello')],
  ] as [string, (log: ReturnType<typeof createLogger>) => void][])('a known secret never reaches a line: %s', (_, speak) => {
    const { lines, logger } = capture(['top-secret-key-0001']);
    speak(logger);
    expect(lines()).not.toContain('top-secret-key-0001');
    expect(JSON.parse(lines())).toHaveProperty('msg');
  });

  test('a secret that JSON escapes is caught as well', () => {
    const secret = 'with"quote\\and-backslash';
    const { lines, logger } = capture([secret]);
    logger.info({ key: secret }, 'hello');
    expect(lines()).not.toContain('and-backslash');
  });

  test('Stellar seeds and URL credentials are caught by their form', () => {
    const { lines, logger } = capture([]);
    logger.info({ seed: SEED, uri: 'mongodb://user:pa55word@db.example/x' }, 'hello');
    expect(lines()).not.toContain(SEED);
    expect(lines()).not.toContain('pa55word');
    expect(lines()).toContain('db.example');
  });

  test('a public key is not mistaken for a secret', () => {
    const { lines, logger } = capture([]);
    logger.info({ account: `G${'A'.repeat(55)}` }, 'hello');
    expect(lines()).toContain(`G${'A'.repeat(55)}`);
  });
});
