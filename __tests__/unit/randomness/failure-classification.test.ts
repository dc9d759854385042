import { z } from 'zod';
import {
  OutcomeUnknownError,
  PermanentError,
  RejectedError,
  TimeoutError,
  TransientError,
} from '../../../src/platform/errors';
import { classifyFailure } from '../../../src/randomness/processing/failure-classification';

const systemError = (code: string): Error => Object.assign(new Error(`connect ${code}`), { code });
const httpError = (status: number): Error => Object.assign(new Error('answer'), { status });

describe('failure classification', () => {
  test.each<[string, unknown, string]>([
    ['a timeout of ours', new TimeoutError('GENERATION_TIMEOUT', 'late'), 'GENERATION_TIMEOUT'],
    ['too small a fee', new TransientError('INSUFFICIENT_FEE', 'more'), 'INSUFFICIENT_FEE'],
    ['an unknown outcome', new OutcomeUnknownError('TX_UNKNOWN', '?'), 'TX_UNKNOWN'],
    ['a refused connection', systemError('ECONNREFUSED'), 'ECONNREFUSED'],
    ['a host not found', systemError('ENOTFOUND'), 'ENOTFOUND'],
    [
      'a fetch that hides its cause',
      new TypeError('fetch failed', { cause: systemError('ECONNRESET') }),
      'ECONNRESET',
    ],
    ['500', httpError(500), 'HTTP_500'],
    ['502', httpError(502), 'HTTP_502'],
    ['503', httpError(503), 'HTTP_503'],
    ['429', httpError(429), 'HTTP_429'],
    ['what nobody declared', new Error('invalid 400 unauthorized revert'), 'UNEXPECTED_ERROR'],
    ['what is no error', 'boom', 'UNEXPECTED_ERROR'],
  ])('%s is retriable', (_, error, code) => {
    expect(classifyFailure(error)).toMatchObject({ retryable: true, code });
  });

  test.each<[string, unknown, string]>([
    ['a malformed request', new PermanentError('MALFORMED_REQUEST', 'no'), 'MALFORMED_REQUEST'],
    ['input that fits no schema', z.string().safeParse(1).error, 'MALFORMED_REQUEST'],
    ['a contract revert', new RejectedError('CONTRACT_REVERT', 'no'), 'CONTRACT_REVERT'],
    ['unauthorized', httpError(401), 'HTTP_401'],
    ['forbidden', httpError(403), 'HTTP_403'],
    ['a permanent error whose text says timeout 503', new PermanentError('X', 'timeout 503 try again'), 'X'],
  ])('%s is not', (_, error, code) => {
    expect(classifyFailure(error)).toMatchObject({ retryable: false, code });
  });
});
