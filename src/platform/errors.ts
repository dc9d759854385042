/**
 * What a failure means for the work that met it. Decided once, where the failure arises, and carried by its class;
 * nothing downstream ever reads a message to find out.
 *
 * - transient: the same call may succeed later.
 * - permanent: the same call can never succeed.
 * - outcome_unknown: the effect may or may not have happened; only looking can tell.
 * - rejected: the counterpart understood and said no.
 */
export type FailureKind = 'transient' | 'permanent' | 'outcome_unknown' | 'rejected';

export interface ErrorOptionsWithDetails {
  cause?: unknown;
  /** Facts for the log: values, never secrets. */
  details?: Record<string, unknown>;
}

/** Base of every error that Sorolane raises on purpose. `code` is stable and part of the public interface. */
export abstract class SorolaneError extends Error {
  abstract readonly kind: FailureKind;
  readonly code: string;
  readonly details: Record<string, unknown>;

  constructor(code: string, message: string, options: ErrorOptionsWithDetails = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.code = code;
    this.details = options.details ?? {};
  }
}

export interface TransientErrorOptions extends ErrorOptionsWithDetails {
  /** The counterpart's own wish (Retry-After), in milliseconds. */
  retryAfterMs?: number;
}

/** Worth another try later. */
export class TransientError extends SorolaneError {
  readonly kind = 'transient';
  readonly retryAfterMs: number | undefined;

  constructor(code: string, message: string, options: TransientErrorOptions = {}) {
    super(code, message, options);
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** A deadline of ours passed before the counterpart answered. */
export class TimeoutError extends TransientError {}

/** What the work needs is all taken, so nothing was tried. Waiting for it costs no attempt. */
export class BusyError extends TransientError {}

/** Another try would fail the same way. */
export class PermanentError extends SorolaneError {
  readonly kind = 'permanent';
}

/** The call may have taken effect. Look before doing it again. */
export class OutcomeUnknownError extends SorolaneError {
  readonly kind = 'outcome_unknown';
}

/** The counterpart refused (a contract error, an authorization that is not there). */
export class RejectedError extends SorolaneError {
  readonly kind = 'rejected';
}

/** A failure reduced to what is stored and shown. */
export interface Failure {
  code: string;
  message: string;
  kind: FailureKind;
  retryable: boolean;
  retryAfterMs?: number;
}

const MAX_MESSAGE_LENGTH = 1000;

/**
 * Reduces anything thrown to a {@link Failure}. An error that is not ours has no declared meaning: it counts as
 * transient, because a bounded number of tries costs less than a request lost to a passing fault.
 */
export function describeFailure(error: unknown): Failure {
  if (error instanceof SorolaneError) {
    return {
      code: error.code,
      message: error.message.slice(0, MAX_MESSAGE_LENGTH),
      kind: error.kind,
      retryable: error.kind === 'transient' || error.kind === 'outcome_unknown',
      ...(error instanceof TransientError && error.retryAfterMs !== undefined
        ? { retryAfterMs: error.retryAfterMs }
        : {}),
    };
  }
  const message = messageOf(error);
  return {
    code: 'UNEXPECTED_ERROR',
    message: message.slice(0, MAX_MESSAGE_LENGTH),
    kind: 'transient',
    retryable: true,
  };
}

/** The Stellar SDK and others throw plain `{ code, message }` objects, which would otherwise read "[object Object]". */
function messageOf(error: unknown): string {
  try {
    if (
      typeof error === 'object' &&
      error !== null &&
      'message' in error &&
      typeof error.message === 'string'
    )
      return error.message;
    return String(error);
  } catch {
    // Thrown by code that isn't ours: even asking it for a text may throw, and whoever asks is handling an error already.
    return 'something was thrown that has no text';
  }
}
