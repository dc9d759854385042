import type { z } from 'zod';

/** What is wrong with one field of a request: `field` is its path in dots. */
export interface FieldProblem {
  field: string;
  problem: string;
}

/** A refusal that an HTTP caller is to see as it is. Anything else thrown in a route becomes a 500 without details. */
export class HttpProblem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly problems: readonly FieldProblem[] = [],
  ) {
    super(message);
    this.name = 'HttpProblem';
  }
}

export const notFound = (what: string): HttpProblem =>
  new HttpProblem(404, 'NOT_FOUND', `${what} was not found`);

export function fieldProblems(error: z.ZodError): FieldProblem[] {
  return error.issues.map((issue) => ({ field: issue.path.join('.') || '(whole)', problem: issue.message }));
}

/** For the fields whose schema has no words of its own. */
function plainly(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return issue.input === undefined ? 'is required' : `expected a ${issue.expected}`;
    case 'too_small':
      return issue.origin === 'number' ? `expected ${issue.minimum} or more` : undefined;
    case 'too_big':
      return issue.origin === 'number' ? `expected ${issue.maximum} or less` : undefined;
    case 'unrecognized_keys':
      return `unknown: ${issue.keys.join(', ')}`;
    default:
      return undefined;
  }
}

/** Parses untrusted input by `schema` (which may check asynchronously). @throws HttpProblem 400 with every field's problem. */
export async function parseInput<T>(schema: z.ZodType<T>, input: unknown): Promise<T> {
  const parsed = await schema.safeParseAsync(input, { error: plainly });
  if (parsed.success) return parsed.data;
  const problems = fieldProblems(parsed.error);
  const named = problems.map(({ field, problem }) => `${field}: ${problem}`).join('; ');
  throw new HttpProblem(400, 'VALIDATION_FAILED', named, problems);
}
