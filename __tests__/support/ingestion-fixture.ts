import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Clock } from '../../src/platform/clock';
import type {
  ContractEvent,
  ContractFollowing,
  EventHandler,
  EventHandlerDefinition,
} from '../../src/ingestion/event-handler';
import { defineEventHandler } from '../../src/ingestion/event-handler';

/** A directory of its own for queue files, removed by `remove`. */
export function queueDirectory(): { file(name?: string): string; remove(): void } {
  const directory = mkdtempSync(path.join(tmpdir(), 'sorolane-events-'));
  return {
    file: (name = 'event-queue.db') => path.join(directory, name),
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}

/** For calling a handler without a propagator. */
export const notFollowing: ContractFollowing = { follow: () => undefined, unfollow: () => undefined };

/** A clock that stands still until it is moved. */
export class ManualClock implements Clock {
  constructor(private nowMs = 1_784_000_000_000) {}
  now = (): number => this.nowMs;
  monotonicMs = (): number => this.nowMs;
  advance(ms: number): void {
    this.nowMs += ms;
  }
}

/** Resolves once `condition` holds; looked at often, with a deadline. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what = 'condition',
  timeoutMs = 10_000,
): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`timed out waiting for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

export interface RecordingHandler {
  handler: EventHandler;
  /** Ids in the order in which they were handled to the end. */
  handled: string[];
  /** Every call's ids. */
  calls: string[][];
}

/** A handler that remembers. `before` may throw to make the call fail. */
export function recordingHandler(
  definition: Partial<EventHandlerDefinition> = {},
  before: (events: readonly ContractEvent[], attempt: number) => Promise<void> | void = () => undefined,
): RecordingHandler {
  const handled: string[] = [];
  const calls: string[][] = [];
  const handler = defineEventHandler({
    name: 'recorder',
    topics: ['*'],
    concurrency: 4,
    priority: 'normal',
    retry: { baseDelayMs: 1, maxDelayMs: 2 },
    handle: async (events, { attempt }) => {
      calls.push(events.map(({ id }) => id));
      await before(events, attempt);
      handled.push(...events.map(({ id }) => id));
      return undefined;
    },
    ...definition,
  });
  return { handler, handled, calls };
}
