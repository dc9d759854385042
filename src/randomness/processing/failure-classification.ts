import { ZodError } from 'zod';
import { describeFailure, SorolaneError, type Failure } from '../../platform/errors';

const RETRIABLE_SYSTEM_CODES: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EPIPE',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'UND_ERR_SOCKET',
]);

const TOO_MANY_REQUESTS = 429;
const REQUEST_TIMEOUT = 408;

/**
 * The specified lists, read from types, codes and status numbers. Our own errors carry their meaning. Of foreign ones,
 * network faults, 408, 429 and 5xx are worth another try; other 4xx and malformed input are not. What says nothing of
 * itself is retried: the number of tries is bounded, a lost request is lost for good.
 */
export function classifyFailure(error: unknown): Failure {
  const failure = describeFailure(error);
  if (error instanceof SorolaneError) return failure;
  if (error instanceof ZodError) {
    return { ...failure, code: 'MALFORMED_REQUEST', kind: 'permanent', retryable: false };
  }
  const status = numberField(error, 'status') ?? numberField(error, 'statusCode');
  if (status !== undefined && status >= 400) return fromStatus(failure, status);
  const systemCode = systemCodeOf(error);
  return systemCode === undefined ? failure : { ...failure, code: systemCode };
}

function fromStatus(failure: Failure, status: number): Failure {
  const retryable = status >= 500 || status === TOO_MANY_REQUESTS || status === REQUEST_TIMEOUT;
  return { ...failure, code: `HTTP_${status}`, kind: retryable ? 'transient' : 'permanent', retryable };
}

/** `fetch` hides the system error one or two causes deep. */
function systemCodeOf(error: unknown): string | undefined {
  for (
    let cause: unknown = error, depth = 0;
    cause instanceof Error && depth < 4;
    cause = cause.cause, depth++
  ) {
    const code: unknown = 'code' in cause ? cause.code : undefined;
    if (typeof code === 'string' && RETRIABLE_SYSTEM_CODES.has(code)) return code;
  }
  return undefined;
}

function numberField(error: unknown, name: 'status' | 'statusCode'): number | undefined {
  if (typeof error !== 'object' || error === null || !(name in error)) return undefined;
  const value: unknown = (error as Record<string, unknown>)[name];
  return typeof value === 'number' ? value : undefined;
}
