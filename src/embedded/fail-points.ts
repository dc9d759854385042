import type { Document, Value } from './bson/values';
import { isDocument, isNumeric, toNumber } from './bson/values';
import { CommandError } from './errors';
import { formatValue } from './storage/format-value';

/** How a command is made to fail, for tests of what clients do then. */
export interface Failure {
  readonly closeConnection: boolean;
  readonly blockMs: number;
  /** A reply to give in place of carrying the command out. */
  readonly error: Document | undefined;
  /** A complaint to add to the reply of a command that was carried out. */
  readonly writeConcernError: Document | undefined;
  readonly errorLabels: readonly Value[] | undefined;
}

interface FailCommand {
  readonly data: Document;
  /** How many commands it still is for. */
  remaining: number;
}

/** `failCommand` of `configureFailPoint`, as the drivers' own tests use it. */
export class FailPoints {
  #failCommand: FailCommand | undefined;

  /** @throws CommandError for a fail point that isn't known */
  configure(body: Document): void {
    if (body.configureFailPoint !== 'failCommand') {
      throw new CommandError(2, `Fail point ${formatValue(body.configureFailPoint)} is not known here`);
    }
    const { mode, data = {} } = body;
    if (!isDocument(data)) throw new CommandError(14, "BSON field 'data' must be an object");
    if (mode === 'off') {
      this.#failCommand = undefined;
      return;
    }
    const times = isDocument(mode) && isNumeric(mode.times) ? toNumber(mode.times) : Infinity;
    this.#failCommand = { data, remaining: times };
  }

  /** The failure for a command, if it is to fail; that uses up one time. */
  failureFor(name: string, appName: string | undefined): Failure | undefined {
    const active = this.#failCommand;
    if (!active) return undefined;
    const { data } = active;
    if (!Array.isArray(data.failCommands) || !data.failCommands.includes(name)) return undefined;
    if (data.appName !== undefined && data.appName !== appName) return undefined;
    if (--active.remaining <= 0) this.#failCommand = undefined;
    const { errorCode, writeConcernError, errorLabels } = data;
    return {
      closeConnection: data.closeConnection === true,
      blockMs: data.blockConnection === true && isNumeric(data.blockTimeMS) ? toNumber(data.blockTimeMS) : 0,
      error: isNumeric(errorCode)
        ? new CommandError(toNumber(errorCode), "Failing command via 'failCommand' failpoint").toReply()
        : undefined,
      writeConcernError: isDocument(writeConcernError) ? writeConcernError : undefined,
      errorLabels: Array.isArray(errorLabels) ? errorLabels : undefined,
    };
  }
}
