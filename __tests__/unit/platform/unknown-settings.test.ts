import { describeConfigProblems, readConfig } from '../../../src/platform/config';
import { warnOfUnread } from '../../../src/platform/settings/superseded';
import { captureLogger } from '../../support/capture-logger';
import { validEnvironment } from '../../support/environment';

function warnings(more: Record<string, string>): Record<string, string> {
  const result = readConfig({ ...validEnvironment(), ...more });
  if (result.kind === 'invalid') throw new Error(describeConfigProblems(result.problems));
  return Object.fromEntries(result.unread.map(({ variable, problem }) => [variable, problem]));
}

describe('variables that nobody knows', () => {
  test.each([
    ['QUEUE_MAX_RETRYS', 'QUEUE_MAX_RETRIES'],
    ['QUEUE_MAX_RETRIE', 'QUEUE_MAX_RETRIES'],
    ['STELAR_CHANNEL_COUNT', 'STELLAR_CHANNEL_COUNT'],
    ['OPERATION_PORT', 'OPERATIONS_PORT'],
    ['API_KEY', 'API_KEYS'],
  ])('%s is warned of, with %s in its place', (wrong, right) => {
    const result = readConfig({
      ...validEnvironment(),
      [right]: undefined,
      NODE_ENV: 'development',
      [wrong]: 'anything',
    });
    expect(result).toMatchObject({
      kind: 'valid',
      unread: [{ variable: wrong, problem: `did you mean ${right}?` }],
    });
  });

  test('one that resembles nothing is warned of when it begins like ours', () => {
    expect(warnings({ QUEUE_COLOUR: 'red', SOROLANE_TURBO: '1', MY_QUEUE_COLOUR: 'red' })).toEqual({
      QUEUE_COLOUR: 'there is no variable of that name: see .env.example',
      SOROLANE_TURBO: 'there is no variable of that name: see .env.example',
    });
  });

  test('a variable that is set itself is not proposed for another', () => {
    expect(warnings({ API_KEY: 'of another service' })).toEqual({});
    expect(warnings({ QUEUE_MAX_RETRIES: '5', QUEUE_MAX_RETRYS: '7' })).toEqual({
      QUEUE_MAX_RETRYS: 'there is no variable of that name: see .env.example',
    });
  });

  test('what platforms and tools set is not warned of', () => {
    expect(
      warnings({
        PATH: '/bin',
        HOME: '/root',
        HOSTNAME: 'pod-7',
        NODE_OPTIONS: '--enable-source-maps',
        NODE_VERSION: '22.1.0',
        HTTP_PROXY: 'http://proxy:3128',
        ORACLE_HOME: '/opt/oracle',
        WORKER_SERVICE_HOST: '10.0.0.7',
        WORKER_SERVICE_PORT: '80',
        WORKER_SERVICE_PORT_HTTP: '80',
        WORKER_PORT: 'tcp://10.0.0.7:80',
        SOROLANE_API_PORT_4000_TCP: 'tcp://10.0.0.8:4000',
        SOROLANE_API_PORT_4000_TCP_ADDR: '10.0.0.8',
        SOROLANE_MONGOD: 'off',
        GIT_COMMIT: 'abc',
        QUEUE_EMPTY: ' ',
      }),
    ).toEqual({});
  });

  test('superseded ones keep their own word', () => {
    expect(warnings({ ORACLE_PRIVATE_KEY: 'x' })).toEqual({ ORACLE_PRIVATE_KEY: 'use ORACLE_SECRET_KEY' });
  });

  test('a start that is refused tells of them too: what is missing may be misspelt', () => {
    const { STELLAR_ORACLE_SECRET_KEY: secret, ...others } = validEnvironment();
    const result = readConfig({ ...others, STELLAR_ORACLE_SECRETKEY: secret });
    if (result.kind === 'valid') throw new Error('it was taken');
    const report = describeConfigProblems(result.problems, result.unread);
    expect(report).toMatch(
      /^ {2}STELLAR_ORACLE_SECRET_KEY +is required: .*\n.*\n {2}STELLAR_ORACLE_SECRETKEY +did you mean STELLAR_ORACLE_SECRET_KEY\?$/m,
    );
    expect(report).not.toContain(secret);
  });

  test('the start says so by name, and repeats no value', () => {
    const log = captureLogger();
    const result = readConfig({ ...validEnvironment(), QUEUE_MAX_RETRYS: 'hush-hush' });
    if (result.kind === 'invalid') throw new Error(describeConfigProblems(result.problems));
    warnOfUnread(log.logger, result.unread);
    expect(log.lines()).toMatchObject([
      {
        level: 'warn',
        variable: 'QUEUE_MAX_RETRYS',
        msg: 'QUEUE_MAX_RETRYS is set, but nothing reads it (did you mean QUEUE_MAX_RETRIES?)',
      },
    ]);
    expect(log.text()).not.toContain('hush-hush');
  });
});
