import {
  describeFailure,
  OutcomeUnknownError,
  PermanentError,
  RejectedError,
  TimeoutError,
  TransientError,
} from '../../../src/platform/errors';

describe('describeFailure', () => {
  test.each([
    [new TransientError('A', 'a'), 'transient', true],
    [new TimeoutError('B', 'b'), 'transient', true],
    [new OutcomeUnknownError('C', 'c'), 'outcome_unknown', true],
    [new PermanentError('D', 'd'), 'permanent', false],
    [new RejectedError('E', 'e'), 'rejected', false],
  ] as const)('%s', (error, kind, retryable) => {
    expect(describeFailure(error)).toMatchObject({
      code: error.code,
      message: error.message,
      kind,
      retryable,
    });
  });

  test('carries the wish of the other side to wait', () => {
    expect(describeFailure(new TransientError('BUSY', 'busy', { retryAfterMs: 1500 }))).toMatchObject({
      retryAfterMs: 1500,
    });
  });

  test.each([
    // Texts that a reader of messages would take for permanent (or for a server fault).
    [new Error('invalid ledger 1500'), 'invalid ledger 1500'],
    ['just a string', 'just a string'],
    [{ code: -32600, message: 'plain object' }, 'plain object'],
  ])('something unknown is retried, whatever its text says', (thrown, message) => {
    expect(describeFailure(thrown)).toEqual({
      code: 'UNEXPECTED_ERROR',
      message,
      kind: 'transient',
      retryable: true,
    });
  });

  test('bounds the message', () => {
    expect(describeFailure(new Error('x'.repeat(5000))).message).toHaveLength(1000);
  });
});
