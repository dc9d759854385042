import { z } from 'zod';
import { type StrkeyForm, strkeyProblem } from './strkey';

type Bounds = { min?: number; max?: number };

const integer = (text: string): number => (/^-?\d+$/.test(text.trim()) ? Number(text) : Number.NaN);

const isoTime = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?Z)?$/;

const whole = (
  fallback: number,
  about: string,
  { min = 0, max = Number.MAX_SAFE_INTEGER }: Bounds,
  unit: string,
) =>
  z
    .string()
    .optional()
    .transform((text) => (text === undefined ? fallback : integer(text)))
    .refine((value) => Number.isSafeInteger(value) && value >= min && value <= max, {
      error: `expected a whole number${unit}${max === Number.MAX_SAFE_INTEGER ? `, ${min} or more` : ` from ${min} to ${max}`}`,
    })
    .meta({ about });

/**
 * A timer of the runtime that is set for more than 2^31 − 1 ms fires at once instead: a lease of a month would be renewed a
 * thousand times a second. Rounded down, because some waits add a margin.
 */
const LONGEST_WAIT_MS = 2_000_000_000;
/** What a TTL index can hold: 2^31 − 1 seconds. */
const GREATEST_AGE_MS = 2_147_483_647_000;

const itemsOf = (text: string | undefined): string[] =>
  (text ?? '')
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');

/** A key or an id of Stellar's, its checksum included. */
const strkey = (form: StrkeyForm, about: string, options: { secret?: boolean } = {}) =>
  z
    .string({ error: `is required: expected ${form.what}` })
    .superRefine((text, context) => {
      const problem = strkeyProblem(form, text);
      if (problem !== null) context.addIssue({ code: 'custom', message: problem });
    })
    .meta({ about, ...options });

/** The building blocks of the settings. Each takes the text of an environment variable; an unset one is its default. */
export const variable = {
  count: (fallback: number, about: string, bounds: Bounds = {}) => whole(fallback, about, bounds, ''),
  /** A port to listen on; 0 takes a free one. */
  optionalPort: (about: string) =>
    z
      .string()
      .optional()
      .transform((text) => (text === undefined ? undefined : integer(text)))
      .refine((port) => port === undefined || (port >= 0 && port <= 65_535), {
        error: 'expected a whole number from 0 to 65535',
      })
      .meta({ about }),
  /** A time that something waits for. */
  durationMs: (fallback: number, about: string, { min = 1 }: Pick<Bounds, 'min'> = {}) =>
    whole(fallback, about, { min, max: LONGEST_WAIT_MS }, ' of milliseconds'),
  /** A time that something is kept, or may have lasted: compared, never waited for. */
  ageMs: (fallback: number, about: string, { min = 1 }: Pick<Bounds, 'min'> = {}) =>
    whole(fallback, about, { min, max: GREATEST_AGE_MS }, ' of milliseconds'),
  decimal: (fallback: number, about: string, { min = 0, max = Number.MAX_VALUE }: Bounds = {}) =>
    z
      .string()
      .optional()
      .transform((text) => (text === undefined ? fallback : Number(text)))
      .refine((value) => Number.isFinite(value) && value >= min && value <= max, {
        error: `expected a number${max === Number.MAX_VALUE ? `, ${min} or more` : ` from ${min} to ${max}`}`,
      })
      .meta({ about }),
  flag: (fallback: boolean, about: string) =>
    z
      .enum(['true', 'false'], { error: 'expected true or false' })
      .optional()
      .transform((text) => (text === undefined ? fallback : text === 'true'))
      .meta({ about }),
  choice: <const Options extends readonly [string, ...string[]]>(
    options: Options,
    fallback: Options[number],
    about: string,
  ) =>
    z
      .enum(options, { error: `expected one of ${options.join(', ')}` })
      .optional()
      .transform((value): Options[number] => value ?? fallback)
      .meta({ about }),
  text: (fallback: string, about: string) =>
    z
      .string()
      .optional()
      .transform((value) => value ?? fallback)
      .meta({ about }),
  optionalText: (about: string) => z.string().optional().meta({ about }),
  /** Text of a fixed form; `expected` says which, for the report. */
  pattern: (form: RegExp, expected: string, about: string, options: { secret?: boolean } = {}) =>
    z
      .string({ error: `is required: expected ${expected}` })
      .regex(form, { error: `expected ${expected}` })
      .meta({ about, ...options }),
  strkey,
  optionalStrkey: (form: StrkeyForm, about: string, options: { secret?: boolean } = {}) =>
    strkey(form, about, options)
      .optional()
      .meta({ about, ...options }),
  /** Names the places of the wrong ones. */
  strkeyList: (form: StrkeyForm, about: string, options: { secret?: boolean } = {}) =>
    z
      .string()
      .optional()
      .transform(itemsOf)
      .superRefine((keys, context) => {
        keys.forEach((key, index) => {
          const problem = strkeyProblem(form, key);
          if (problem !== null)
            context.addIssue({ code: 'custom', message: `key ${index + 1} of ${keys.length}: ${problem}` });
        });
      })
      .meta({ about, ...options }),
  /** ISO 8601, of a day that there is. */
  optionalTime: (about: string) =>
    z
      .string()
      .refine((text) => isoTime.test(text) && !Number.isNaN(Date.parse(text)), {
        error: 'expected an ISO 8601 date or UTC time, like 2026-11-30 or 2026-11-30T12:00:00Z',
      })
      .optional()
      .meta({ about }),
  list: (
    about: string,
    options: { secret?: boolean; item?: RegExp; expected?: string; fallback?: readonly string[] } = {},
  ) =>
    z
      .string()
      .optional()
      .transform((text) => (text === undefined ? [...(options.fallback ?? [])] : itemsOf(text)))
      .refine((items) => options.item === undefined || items.every((item) => options.item?.test(item)), {
        error: `expected a comma-separated list of ${options.expected ?? 'values'}`,
      })
      .meta({ about, ...(options.secret === undefined ? {} : { secret: options.secret }) }),
} as const;
