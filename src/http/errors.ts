import type { ErrorRequestHandler, RequestHandler } from 'express';
import { isDatabaseUnreachable } from '../platform/database/faults';
import type { Logger } from '../platform/logger';
import { HttpProblem } from '../platform/problem';

/**
 * What Express and its body parser raise over a request that can't be read (a path that is no UTF-8, a body that is not in
 * the encoding it claims) carries a 4xx status; some name a type too. Everything else that is not a problem of ours is a fault.
 */
interface UnreadableRequest {
  status: number;
  type?: unknown;
  /** Of a body that is too large, bytes. */
  limit?: unknown;
}

const isUnreadableRequest = (error: unknown): error is UnreadableRequest =>
  error instanceof Error &&
  'status' in error &&
  typeof error.status === 'number' &&
  error.status >= 400 &&
  error.status < 500;

function describeUnreadable({ type, limit }: UnreadableRequest): [code: string, message: string] {
  switch (type) {
    case 'entity.parse.failed':
      return ['INVALID_JSON', 'The body is not valid JSON'];
    case 'entity.too.large':
      return ['BODY_TOO_LARGE', `The body is larger than ${String(limit)} bytes (HTTP_BODY_LIMIT_BYTES)`];
    case 'charset.unsupported':
      return ['UNSUPPORTED_MEDIA_TYPE', 'Send application/json in UTF-8'];
    case 'encoding.unsupported':
      return ['UNSUPPORTED_MEDIA_TYPE', 'Send the body as it is, or in content-encoding gzip, deflate or br'];
    default:
      return ['BAD_REQUEST', 'The request could not be read'];
  }
}

export const unknownRoute: RequestHandler = (request) => {
  throw new HttpProblem(404, 'NO_SUCH_ROUTE', `There is no ${request.method} ${request.path}`);
};

/** The one place where an error becomes an answer. Stacks and causes go to the log, never to the caller. */
export function answerErrors(logger: Logger): ErrorRequestHandler {
  return (error: unknown, request, response, next) => {
    if (response.headersSent) {
      next(error);
      return;
    }
    const problem = toProblem(error);
    const requestId = response.getHeader('x-request-id');
    if (problem.status >= 500)
      logger.error({ err: error, method: request.method, path: request.path, requestId }, 'request failed');
    response.status(problem.status).json({
      success: false,
      error: problem.message,
      code: problem.code,
      ...(problem.problems.length > 0 ? { problems: problem.problems } : {}),
    });
  };
}

function toProblem(error: unknown): HttpProblem {
  if (error instanceof HttpProblem) return error;
  if (isUnreadableRequest(error)) {
    const [code, message] = describeUnreadable(error);
    return new HttpProblem(error.status, code, message);
  }
  if (isDatabaseUnreachable(error))
    return new HttpProblem(503, 'DATABASE_UNAVAILABLE', 'The database does not answer; try again shortly');
  return new HttpProblem(
    500,
    'INTERNAL_ERROR',
    'Something went wrong here; the log has it under the x-request-id of this answer',
  );
}
