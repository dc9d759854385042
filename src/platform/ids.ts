import { randomBytes, randomUUID } from 'node:crypto';
import { hostname } from 'node:os';

/** A string that only its own maker can produce: a job id can't be passed where a lease token is wanted. */
export type Branded<Name extends string> = string & { readonly __brand: Name };

/** One worker process, one boot. A restarted process is a new worker, so it never adopts what its predecessor held. */
export type WorkerId = Branded<'WorkerId'>;

/** host:pid:random, unique per boot even where host names and pids repeat (containers). */
export function makeWorkerId(): WorkerId {
  return `${hostname()}:${process.pid}:${randomBytes(4).toString('hex')}` as WorkerId;
}

/** One HTTP request, for its log lines and its error answer. */
export function makeRequestId(): string {
  return randomUUID();
}
