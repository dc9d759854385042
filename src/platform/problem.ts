import type { Request, RequestHandler } from 'express';
import { z } from 'zod';
import { type FieldProblem, fieldProblems, plainly } from './input-wording';

export type { FieldProblem } from './input-wording';

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

/** 400, with the problem of each field. */
export function invalidInput(problems: readonly FieldProblem[]): HttpProblem {
  const named = problems.map(({ field, problem }) => `${field}: ${problem}`).join('; ');
  return new HttpProblem(400, 'VALIDATION_FAILED', named, problems);
}

/** Parses untrusted input by `schema` (which may check asynchronously). @throws HttpProblem 400 with every field's problem. */
export async function parseInput<T>(schema: z.ZodType<T>, input: unknown): Promise<T> {
  const parsed = await schema.safeParseAsync(input, { error: plainly, reportInput: true });
  if (parsed.success) return parsed.data;
  throw invalidInput(fieldProblems(parsed.error));
}

/**
 * The JSON body of a request. One that was not sent counts as an empty object, so that the fields it lacks are named.
 * @throws HttpProblem 400, or 415 for a body that is not said to be JSON (and was not read).
 */
export async function parseBody<T>(schema: z.ZodType<T>, request: Request): Promise<T> {
  if (request.is('application/json') === false) {
    const type = request.get('content-type');
    throw new HttpProblem(
      415,
      'UNSUPPORTED_MEDIA_TYPE',
      `Send application/json${type === undefined ? ' and say so in content-type' : `, not ${type.slice(0, 40)}`}`,
    );
  }
  const body: unknown = request.body;
  return parseInput(schema, body === undefined ? {} : body);
}

const nothing = z.strictObject({});

/** For routes that know no query: a key that is swallowed leaves its sender believing that it did something. */
export const takesNoQuery: RequestHandler = async (request, _response, next) => {
  await parseInput(nothing, request.query);
  next();
};
