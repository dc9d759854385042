import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describeConfigProblems, readConfig, settingGroups } from '../../../src/platform/config';
import { supersededSettings, warnOfUnread } from '../../../src/platform/settings/superseded';
import { captureLogger } from '../../support/capture-logger';
import { validEnvironment } from '../../support/environment';

/** What a start with these says: refused for which, warned of which. */
function started(more: Record<string, string>): { refused: string[]; warned: string[] } {
  const result = readConfig({ ...validEnvironment(), ...more });
  return result.kind === 'invalid'
    ? { refused: result.problems.map(({ variable }) => variable), warned: [] }
    : { refused: [], warned: result.unread.map(({ variable }) => variable) };
}

const ours = new Set(settingGroups.flatMap(({ settings }) => Object.keys(settings)));

describe('variables of earlier oracles', () => {
  test.each(supersededSettings.filter(({ stops, isAmbient }) => !(stops ?? isAmbient)))(
    '$name is warned about',
    ({ name }) => {
      expect(started({ [name]: 'something' })).toEqual({ refused: [], warned: [name] });
    },
  );

  test.each([
    ['ORACLE_MODE', 'multi'],
    ['ORACLE_MODE', 'Quorum'],
    ['MULTI_ORACLE_ENABLED', 'true'],
    ['KEY_PROVIDER', 'aws-kms'],
    ['KEY_PROVIDER', 'gcp-kms'],
  ])('%s=%s stops the start: going on would be weaker than it asks for', (name, value) => {
    expect(started({ [name]: value })).toEqual({ refused: [name], warned: [] });
  });

  test.each([
    ['ORACLE_MODE', 'single'],
    ['MULTI_ORACLE_ENABLED', 'FALSE'],
    ['KEY_PROVIDER', ' env '],
    ['KEY_PROVIDER', ''],
    ['ORACLE_DRAW_REQUEST_REPLAY', 'false'],
    ['ALERTING_PROVIDER', 'none'],
    ['AWS_REGION', 'eu-central-1'],
  ])('%s=%s asks for nothing else than what happens', (name, value) => {
    expect(started({ [name]: value })).toEqual({ refused: [], warned: [] });
  });

  test('the warning says what to set in its place, and no value', () => {
    const log = captureLogger();
    const result = readConfig({ ...validEnvironment(), ORACLE_PRIVATE_KEY: 'hush-hush' });
    if (result.kind === 'invalid') throw new Error(describeConfigProblems(result.problems));
    warnOfUnread(log.logger, result.unread);
    expect(log.lines()).toMatchObject([
      {
        level: 'warn',
        variable: 'ORACLE_PRIVATE_KEY',
        msg: 'ORACLE_PRIVATE_KEY is set, but nothing reads it (use ORACLE_SECRET_KEY)',
      },
    ]);
    expect(log.text()).not.toContain('hush-hush');
  });

  test('none of them is read, and what takes their place is', () => {
    for (const { name, instead } of supersededSettings) {
      expect(ours).not.toContain(name);
      for (const variable of instead.match(/\b[A-Z]+(_[A-Z]+)+\b/g) ?? []) expect(ours).toContain(variable);
    }
  });

  test('the documentation names each of them beside what takes its place', () => {
    const text = readFileSync(path.join(__dirname, '../../../docs/configuration.md'), 'utf8');
    const rows = text.split('\n').filter((line) => line.startsWith('|'));
    for (const { name, instead } of supersededSettings) {
      expect(rows.filter((row) => row.includes(`\`${name}\``))).toEqual([
        expect.stringContaining(`| ${instead} `),
      ]);
    }
  });
});
