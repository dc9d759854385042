import type { z } from 'zod';
import { makeCensor } from './logger';

/** What is wrong with one field of a request: `field` is its path in dots. */
export interface FieldProblem {
  field: string;
  problem: string;
}

const MAX_SHOWN = 40;
const MAX_UNKNOWN_KEYS = 5;
/** Someone will paste a secret key where the public one belongs; it must not come back in an answer that gets logged. */
const censor = makeCensor([]);

const typeNames: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
};

/** What was sent, for an error text: at most 40 characters of it, and no secret key. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(cut(censor(value)));
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' && value !== null ? 'an object' : String(value);
}

function cut(text: string): string {
  const characters = Array.from(text);
  return characters.length > MAX_SHOWN ? `${characters.slice(0, MAX_SHOWN - 1).join('')}…` : text;
}

/** For fields whose schema has no words of its own. */
export function plainly(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return issue.input === undefined
        ? 'is required'
        : `expected ${typeNames[issue.expected] ?? issue.expected}`;
    case 'invalid_value':
      return `expected ${issue.values.map((value) => JSON.stringify(value)).join(' or ')}`;
    case 'too_small':
      return `expected ${String(issue.minimum)} ${unitOf(issue.origin)}or more`;
    case 'too_big':
      return `expected ${String(issue.maximum)} ${unitOf(issue.origin)}or less`;
    case 'unrecognized_keys': {
      const known = knownKeys(issue.inst);
      return known.length === 0
        ? 'is not known; nothing is taken here'
        : `is not known; known: ${known.join(', ')}`;
    }
    default:
      return undefined;
  }
}

const unitOf = (origin: string): string =>
  origin === 'string' ? 'characters ' : origin === 'array' ? 'entries ' : '';

function knownKeys(schema: unknown): string[] {
  const shape = typeof schema === 'object' && schema !== null && 'shape' in schema ? schema.shape : null;
  return typeof shape === 'object' && shape !== null ? Object.keys(shape) : [];
}

/** Of an error whose issues carry their input; each problem names the value that was sent. */
export function fieldProblems(error: z.ZodError): FieldProblem[] {
  return error.issues.flatMap((issue) => {
    if (issue.code === 'unrecognized_keys') {
      return issue.keys
        .slice(0, MAX_UNKNOWN_KEYS)
        .map((key) => ({ field: [...issue.path, cut(censor(key))].join('.'), problem: issue.message }));
    }
    const sent = issue.input === undefined ? '' : `, not ${shown(issue.input)}`;
    return [{ field: issue.path.join('.') || '(body)', problem: `${issue.message}${sent}` }];
  });
}
