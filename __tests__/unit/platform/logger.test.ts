import type { Logger } from '../../../src/platform/logger';
import { captureLogger } from '../../support/capture-logger';

const SEED = `S${'A'.repeat(55)}`;

describe('logger', () => {
  test.each([
    ['as a field', (log: Logger) => log.info({ key: 'top-secret-key-0001' }, 'hello')],
    ['deep in an object', (log) => log.info({ a: { b: [{ c: 'top-secret-key-0001' }] } }, 'hello')],
    ['in the message', (log) => log.info('key top-secret-key-0001 refused')],
    [
      'in an error and its cause',
      (log) => log.error({ err: new Error('x', { cause: new Error('top-secret-key-0001') }) }, 'failed'),
    ],
    ['in a child', (log) => log.child({ key: 'top-secret-key-0001' }).warn('hello')],
  ] as [string, (log: Logger) => void][])('a known secret never reaches a line: %s', (_, speak) => {
    const { text, logger } = captureLogger(['top-secret-key-0001']);
    speak(logger);
    expect(text()).not.toContain('top-secret-key-0001');
    expect(JSON.parse(text())).toHaveProperty('msg');
  });

  test('a secret that JSON escapes is caught as well', () => {
    const secret = 'with"quote\\and-backslash';
    const { text, logger } = captureLogger([secret]);
    logger.info({ key: secret }, 'hello');
    expect(text()).not.toContain('and-backslash');
  });

  test('Stellar seeds and URL credentials are caught by their form', () => {
    const { text, logger } = captureLogger([]);
    logger.info({ seed: SEED, uri: 'mongodb://user:pa55word@db.example/x' }, 'hello');
    expect(text()).not.toContain(SEED);
    expect(text()).not.toContain('pa55word');
    expect(text()).toContain('db.example');
  });

  test('a public key is not mistaken for a secret', () => {
    const { text, logger } = captureLogger([]);
    logger.info({ account: `G${'A'.repeat(55)}` }, 'hello');
    expect(text()).toContain(`G${'A'.repeat(55)}`);
  });
});
