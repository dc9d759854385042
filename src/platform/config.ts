import { z } from 'zod';
import { baseSettings } from './settings/base.settings';
import { crossChecks } from './settings/cross-checks';
import { httpSettings } from './settings/http.settings';
import { ingestionSettings } from './settings/ingestion.settings';
import { randomnessSettings } from './settings/randomness.settings';
import { stellarSettings } from './settings/stellar.settings';
import { supersededIn, type UnreadSetting } from './settings/superseded';
import { unknownIn } from './settings/unknown';
import { verificationSettings } from './settings/verification.settings';
import { workerSettings } from './settings/worker.settings';

/** Every variable there is, in the order of `.env.example`. */
export const settingGroups: readonly { title: string; settings: Record<string, z.ZodType> }[] = [
  { title: 'Process and database', settings: baseSettings },
  { title: 'HTTP API', settings: httpSettings },
  { title: 'Workers', settings: workerSettings },
  { title: 'Verification', settings: verificationSettings },
  { title: 'Randomness', settings: randomnessSettings },
  { title: 'Event ingestion', settings: ingestionSettings },
  { title: 'Stellar', settings: stellarSettings },
];

const schema = z.object({
  ...baseSettings,
  ...httpSettings,
  ...workerSettings,
  ...verificationSettings,
  ...randomnessSettings,
  ...ingestionSettings,
  ...stellarSettings,
});

/** All settings, parsed, under the names of their variables. Every `…_MS` is in milliseconds. */
export type Config = Readonly<z.infer<typeof schema>>;

export interface ConfigProblem {
  variable: string;
  problem: string;
}

/** `unread` are set, and belong to earlier services or to nobody: a slip of the pen. */
export type ConfigResult =
  | { kind: 'valid'; config: Config; unread: UnreadSetting[] }
  | { kind: 'invalid'; problems: ConfigProblem[]; unread: UnreadSetting[] };

/** Reads every variable and reports all that is wrong at once. An empty variable counts as unset. */
export function readConfig(environment: Record<string, string | undefined>): ConfigResult {
  const values: Record<string, unknown> = {};
  const problems: ConfigProblem[] = [];
  for (const [name, variable] of Object.entries<z.ZodType>(schema.shape)) {
    const text = environment[name]?.trim();
    const parsed = variable.safeParse(text === '' ? undefined : text);
    if (parsed.success) values[name] = parsed.data;
    else
      problems.push({
        variable: name,
        problem: parsed.error.issues.map((issue) => issue.message).join('; '),
      });
  }
  // A check between variables speaks up only where each of them is right by itself: a second complaint about one typo helps nobody.
  for (const check of crossChecks) {
    if (check.variables.some((name) => !(name in values))) continue;
    const problem = check.problem(values as Config);
    if (problem !== null) problems.push({ variable: check.variables[0] as string, problem });
  }
  const { stopping, warnings } = supersededIn(environment);
  problems.push(...stopping);
  const unread = [...warnings, ...unknownIn(environment, Object.keys(schema.shape))];
  return problems.length > 0
    ? { kind: 'invalid', problems, unread }
    : { kind: 'valid', config: Object.freeze(values) as Config, unread };
}

/**
 * One line a problem, for a person at a terminal. Values are not repeated: they may be secrets. A variable that is missing
 * may be one of the unread, misspelt.
 */
export function describeConfigProblems(
  problems: readonly ConfigProblem[],
  unread: readonly UnreadSetting[] = [],
): string {
  const width = Math.max(...[...problems, ...unread].map(({ variable }) => variable.length));
  const line = ({ variable, problem }: ConfigProblem): string => `  ${variable.padEnd(width)}  ${problem}`;
  const count = problems.length === 1 ? '1 problem' : `${problems.length} problems`;
  return [
    `The configuration has ${count}:`,
    ...problems.map(line),
    ...(unread.length === 0 ? [] : ['Set, but read by nothing:', ...unread.map(line)]),
    'Each variable is explained in .env.example.',
  ].join('\n');
}

/** An endpoint without path, query and user holds no key, and a log that hid it could not say which endpoint is meant. */
const BARE_ORIGIN = /^https?:\/\/[^/?#@\s]+\/?$/;

/** The values that must never be printed. */
export function secretsOf(config: Config): string[] {
  return Object.entries<z.ZodType>(schema.shape)
    .filter(([, variable]) => variable.meta()?.['secret'] === true)
    .flatMap(([name]) => config[name as keyof Config] as string | string[] | undefined)
    .filter((value) => value !== undefined)
    .filter((value) => !BARE_ORIGIN.test(value));
}
