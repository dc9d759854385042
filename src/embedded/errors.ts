import type { Document } from './bson/values';

/** The names that servers give to the codes used here; drivers and applications test for both. */
const CODE_NAMES: Readonly<Record<number, string>> = {
  1: 'InternalError',
  2: 'BadValue',
  9: 'FailedToParse',
  11: 'UserNotFound',
  13: 'Unauthorized',
  14: 'TypeMismatch',
  16: 'InvalidLength',
  20: 'IllegalOperation',
  22: 'InvalidBSON',
  26: 'NamespaceNotFound',
  27: 'IndexNotFound',
  28: 'PathNotViable',
  40: 'ConflictingUpdateOperators',
  43: 'CursorNotFound',
  48: 'NamespaceExists',
  50: 'MaxTimeMSExpired',
  52: 'DollarPrefixedFieldName',
  54: 'NotSingleValueField',
  56: 'EmptyFieldName',
  59: 'CommandNotFound',
  66: 'ImmutableField',
  67: 'CannotCreateIndex',
  72: 'InvalidOptions',
  73: 'InvalidNamespace',
  79: 'UnknownReplWriteConcern',
  85: 'IndexOptionsConflict',
  86: 'IndexKeySpecsConflict',
  91: 'ShutdownInProgress',
  100: 'UnsatisfiableWriteConcern',
  115: 'CommandNotSupported',
  121: 'DocumentValidationFailure',
  166: 'CommandNotSupportedOnView',
  168: 'InvalidPipelineOperator',
  171: 'CannotIndexParallelArrays',
  175: 'QueryPlanKilled',
  189: 'PrimarySteppedDown',
  197: 'InvalidIndexSpecificationOption',
  211: 'KeyNotFound',
  263: 'OperationNotSupportedInTransaction',
  10107: 'NotWritablePrimary',
  10334: 'BSONObjectTooLarge',
  11000: 'DuplicateKey',
  11600: 'InterruptedAtShutdown',
  11602: 'InterruptedDueToReplStateChange',
  13388: 'StaleConfig',
  13435: 'NotPrimaryNoSecondaryOk',
  13436: 'NotPrimaryOrSecondary',
};

export function codeNameOf(code: number): string {
  return CODE_NAMES[code] ?? `Location${code}`;
}

/** A refusal the client is told: `code` is MongoDB's number, `details` are further fields of the reply. */
export class CommandError extends Error {
  constructor(
    readonly code: number,
    message: string,
    readonly details: Document = {},
  ) {
    super(message);
    this.name = 'CommandError';
  }

  get codeName(): string {
    return codeNameOf(this.code);
  }

  toReply(): Document {
    return {
      ok: 0,
      errmsg: this.message,
      code: this.code,
      codeName: this.codeName,
      ...this.details,
    };
  }
}

export const badValue = (message: string): CommandError => new CommandError(2, message);
export const failedToParse = (message: string): CommandError => new CommandError(9, message);
export const typeMismatch = (message: string): CommandError => new CommandError(14, message);
