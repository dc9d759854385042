import { COMMANDS } from './commands/registry';
import type { Engine, Reply } from './commands/request';
import type { Document } from './bson/values';
import { field, isDocument, isNumeric, toNumber } from './bson/values';
import { badValue, CommandError } from './errors';
import type { Failure } from './fail-points';
import { Scope } from './scope';

const nameOf = (body: Document): string => Object.keys(body)[0] ?? '';

/** What a standalone server can't promise it refuses, so that no one counts on it. */
function requireServable(body: Document): void {
  if (body.startTransaction !== undefined || body.autocommit !== undefined || body.txnNumber !== undefined) {
    throw new CommandError(20, 'Transaction numbers are only allowed on a replica set member or mongos');
  }
  const { readConcern, writeConcern } = body;
  if (isDocument(readConcern) && (readConcern.level === 'snapshot' || readConcern.level === 'linearizable')) {
    throw new CommandError(123, 'node needs to be a replica set member to use read concern');
  }
  const w = isDocument(writeConcern) ? writeConcern.w : undefined;
  if (isNumeric(w) && toNumber(w) > 1) throw badValue("cannot use 'w' > 1 when a host is not replicated");
  if (typeof w === 'string' && w !== 'majority') {
    throw badValue(`cannot use non-majority 'w' mode ${w} when a host is not a member of a replica set`);
  }
}

/** Carries out commands one at a time; each sees the whole effect of those before it, and none of a part. */
export class Dispatcher {
  constructor(
    readonly engine: Engine,
    readonly onDefect: (error: unknown, command: string) => void,
  ) {}

  appNameIn(body: Document): string | undefined {
    const application = isDocument(body.client) ? body.client.application : undefined;
    const name = isDocument(application) ? application.name : undefined;
    return typeof name === 'string' ? name : undefined;
  }

  failureFor(body: Document, appName: string | undefined): Failure | undefined {
    return this.engine.failPoints.failureFor(nameOf(body), appName);
  }

  executeFailing(body: Document, connectionId: number, failure: Failure): Reply {
    const labels = failure.errorLabels ? { errorLabels: [...failure.errorLabels] } : {};
    if (failure.error) return { ...failure.error, ...labels };
    const reply = this.execute(body, connectionId);
    return failure.writeConcernError
      ? { ...reply, writeConcernError: failure.writeConcernError, ...labels }
      : reply;
  }

  execute(body: Document, connectionId: number): Reply {
    const name = nameOf(body);
    try {
      const command = COMMANDS.get(name);
      if (!command) throw new CommandError(59, `no such command: '${name}'`);
      const db = field(body, '$db');
      if (typeof db !== 'string' || db === '')
        throw new CommandError(40571, 'OP_MSG requests require a $db argument');
      if (/[/\\. "$\0]/.test(db)) throw new CommandError(73, `Invalid database name: '${db}'`);
      requireServable(body);
      this.engine.commandCounts.set(name, (this.engine.commandCounts.get(name) ?? 0) + 1);
      const scope = Scope.of(body, new Date());
      const reply = command({ engine: this.engine, db, name, body, scope, connectionId });
      scope.deadline.lift();
      return reply;
    } catch (error) {
      if (error instanceof CommandError) return error.toReply();
      this.onDefect(error, name);
      return new CommandError(1, error instanceof Error ? error.message : String(error)).toReply();
    }
  }
}
