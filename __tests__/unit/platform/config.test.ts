import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describeConfigProblems, readConfig, secretsOf, settingGroups } from '../../../src/platform/config';
import { renderEnvExample } from '../../../src/platform/env-example';
import { validEnvironment } from '../../support/environment';

const problemsOf = (environment: Record<string, string | undefined>): Record<string, string> => {
  const result = readConfig(environment);
  if (result.kind === 'valid') return {};
  return Object.fromEntries(result.problems.map(({ variable, problem }) => [variable, problem]));
};

describe('configuration', () => {
  test('a complete environment is read, with defaults for the rest', () => {
    const result = readConfig(validEnvironment());
    expect(result).toMatchObject({
      kind: 'valid',
      config: { PORT: 4000, VERIFICATION_WORKER_CONCURRENCY: 1 },
    });
  });

  test('all problems are reported at once, each with its variable and what was expected', () => {
    const problems = problemsOf({
      ...validEnvironment(),
      MONGODB_URI: 'localhost',
      PORT: '70000',
      VERIFICATION_WORKER_CONCURRENCY: 'two',
      LOG_LEVEL: 'loud',
    });
    expect(problems).toEqual({
      MONGODB_URI: expect.stringContaining('mongodb://') as string,
      PORT: 'expected a whole number from 0 to 65535',
      VERIFICATION_WORKER_CONCURRENCY: expect.stringContaining('expected a whole number') as string,
      LOG_LEVEL: expect.stringContaining('expected one of fatal, error, warn') as string,
    });
  });

  test('an empty variable counts as unset', () => {
    expect(problemsOf({ ...validEnvironment(), PORT: ' ' })).toEqual({});
    expect(problemsOf({ ...validEnvironment(), MONGODB_URI: '' })).toEqual({
      MONGODB_URI: expect.stringContaining('is required') as string,
    });
  });

  test.each([
    [
      'a lease not longer than the longest step',
      { VERIFICATION_WORKER_LEASE_MS: '60000' },
      'VERIFICATION_WORKER_LEASE_MS',
    ],
    [
      'a heartbeat not shorter than stale',
      { VERIFICATION_WORKER_HEARTBEAT_INTERVAL_MS: '60000' },
      'VERIFICATION_WORKER_HEARTBEAT_INTERVAL_MS',
    ],
    [
      'a confirmation window inside the transaction validity',
      { STELLAR_TX_VALIDITY_MS: '120000' },
      'STELLAR_TX_CONFIRMATION_TIMEOUT_MS',
    ],
    ['a randomness lease not longer than the longest phase', { QUEUE_LEASE_MS: '45000' }, 'QUEUE_LEASE_MS'],
    [
      'a previous oracle key without the time of the rotation',
      { ORACLE_PREVIOUS_SECRET_KEY: validEnvironment().STELLAR_ORACLE_SECRET_KEY },
      'ORACLE_KEY_ROTATED_AT',
    ],
    ['a process without a role', { SOROLANE_ROLES: ',' }, 'SOROLANE_ROLES'],
    [
      'a lease that no timer can wait for',
      { VERIFICATION_WORKER_LEASE_MS: '2592000000' },
      'VERIFICATION_WORKER_LEASE_MS',
    ],
  ])('what could not work is refused: %s', (_, change, variable) => {
    expect(Object.keys(problemsOf({ ...validEnvironment(), ...change }))).toEqual([variable]);
  });

  test('what is only compared may be longer than a timer', () => {
    expect(problemsOf({ ...validEnvironment(), QUEUE_JOB_RETENTION_MS: '31536000000' })).toEqual({});
  });

  test('the report names every variable and never repeats a value', () => {
    const secret = 'SHOULD-NEVER-BE-SHOWN';
    const result = readConfig({ ...validEnvironment(), STELLAR_ORACLE_SECRET_KEY: secret });
    if (result.kind !== 'invalid') throw new Error('the bad secret was accepted');
    const report = describeConfigProblems(result.problems);
    expect(report).toContain('STELLAR_ORACLE_SECRET_KEY');
    expect(report).not.toContain(secret);
  });

  test('secrets are known as such', () => {
    const environment = validEnvironment();
    const result = readConfig(environment);
    if (result.kind !== 'valid') throw new Error(describeConfigProblems(result.problems));
    expect(secretsOf(result.config)).toEqual(
      expect.arrayContaining([
        environment['MONGODB_URI'],
        environment['API_KEYS'],
        environment['STELLAR_ORACLE_SECRET_KEY'],
      ]),
    );
  });

  test('an endpoint is a secret only where its URL can hold a key', () => {
    const [bare, keyed] = ['https://rpc.example', 'https://rpc.example/v1/abcdef'];
    const result = readConfig({ ...validEnvironment(), SOROBAN_RPC_URLS: [bare, keyed].join(',') });
    if (result.kind === 'invalid') throw new Error(describeConfigProblems(result.problems));
    expect(secretsOf(result.config)).toContain(keyed);
    expect(secretsOf(result.config)).not.toContain(bare);
  });

  test.each([
    ['mongodb://db:27017', false],
    ['mongodb://db:27017/?directConnection=true', false],
    ['mongodb://db:27017/sorolane', true],
    ['mongodb+srv://user:pass@db.example/sorolane?retryWrites=true', true],
    ['mongodb://a:1,b:2/sorolane?replicaSet=rs', true],
  ])('the database has to be named: %s', (uri, isAccepted) => {
    expect(Object.keys(problemsOf({ ...validEnvironment(), MONGODB_URI: uri }))).toEqual(
      isAccepted ? [] : ['MONGODB_URI'],
    );
  });

  test('the operations port is off unless set, and not the port of the API', () => {
    const withPorts = (OPERATIONS_PORT: string, PORT = '4000', SOROLANE_ROLES = 'api') =>
      readConfig({ ...validEnvironment(), OPERATIONS_PORT, PORT, SOROLANE_ROLES });
    expect(withPorts('')).toMatchObject({ kind: 'valid', config: { OPERATIONS_PORT: undefined } });
    expect(withPorts('0', '0')).toMatchObject({ kind: 'valid', config: { OPERATIONS_PORT: 0 } });
    expect(withPorts('4000', '4000', 'worker').kind).toBe('valid');
    for (const wrong of ['4000', '70000', '-1', 'on']) {
      expect(withPorts(wrong)).toMatchObject({
        kind: 'invalid',
        problems: [{ variable: 'OPERATIONS_PORT' }],
      });
    }
  });

  test('no variable stands in two groups', () => {
    const names = settingGroups.flatMap(({ settings }) => Object.keys(settings));
    expect(names).toEqual([...new Set(names)]);
  });

  test('.env.example is the schema, word for word', () => {
    const file = readFileSync(path.join(__dirname, '../../../.env.example'), 'utf8');
    expect(file).toBe(renderEnvExample());
  });
});
