import type { ContractEvent, EventHandler, EventPriority, EventRetryPolicy } from './event-handler';
import { compileTopicPattern, topicNames, type TopicNames } from './topic-pattern';

export type RetryPolicies = Record<EventPriority, EventRetryPolicy>;

/** A handler with what it left open filled in. */
export interface RegisteredHandler {
  handler: EventHandler;
  retry: EventRetryPolicy;
}

interface Entry extends RegisteredHandler {
  matches: (names: TopicNames) => boolean;
  contracts: ReadonlySet<string> | null;
}

const RANK: Record<EventPriority, number> = { high: 0, normal: 1, low: 2 };

/** The handlers of one process, highest priority first. */
export class HandlerRegistry {
  private readonly entries: Entry[] = [];

  constructor(private readonly policies: RetryPolicies) {}

  /** @throws RangeError when the name is taken: two handlers would share one set of deliveries. */
  register(handler: EventHandler): void {
    if (this.entries.some((entry) => entry.handler.name === handler.name)) {
      throw new RangeError(`event handler ${handler.name} is registered twice`);
    }
    const patterns = handler.topics.map(compileTopicPattern);
    this.entries.push({
      handler,
      retry: { ...this.policies[handler.priority], ...handler.retry },
      matches: (names) => patterns.some((matches) => matches(names)),
      contracts: handler.contracts === undefined ? null : new Set(handler.contracts),
    });
    this.entries.sort((a, b) => RANK[a.handler.priority] - RANK[b.handler.priority]);
  }

  all(): readonly RegisteredHandler[] {
    return this.entries;
  }

  wanting(event: ContractEvent): RegisteredHandler[] {
    const names = topicNames(event.topics);
    return this.entries.filter(
      ({ contracts, matches }) => (contracts === null || contracts.has(event.contractId)) && matches(names),
    );
  }
}
