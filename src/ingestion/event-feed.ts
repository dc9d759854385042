import { decodeEvent, rememberDecoded } from './event-decoder';
import type { ContractEvent } from './event-handler';
import type { ContractValueDecoder } from './event-source';
import type { EventStore } from './event-store';
import { compileTopicPattern, topicNames } from './topic-pattern';

export interface EventFilter {
  /** Empty: of every contract. */
  contracts: readonly string[];
  /** Patterns as handlers use them. Empty: every topic. */
  topics: readonly string[];
}

/** A place in the order of storing. */
export type FeedPosition = number;

export interface FeedPage {
  events: ContractEvent[];
  /** Where to read on. */
  position: FeedPosition;
  /** True when nothing more was stored when this was read. */
  atEnd: boolean;
}

/**
 * - found: reading goes on right behind the event
 * - forgotten: the event was cleaned away; `position` is the oldest that is still kept, and something may be missing
 */
export type ResumePoint = { kind: 'found' | 'forgotten'; position: FeedPosition };

/** Every reader asks for the same recent events. */
const CACHE_TOPICS = 2_000;

/** Stored events as a stream for readers who keep their own place. Nobody's reading holds up anyone else's. */
export class EventFeed {
  private readonly decodeTopic: ContractValueDecoder;

  constructor(
    private readonly store: EventStore,
    private readonly decode: ContractValueDecoder,
  ) {
    this.decodeTopic = rememberDecoded(decode, CACHE_TOPICS);
  }

  /** Behind everything stored so far. */
  end(): FeedPosition {
    return this.store.seqRange()?.last ?? 0;
  }

  resumeAfter(eventId: string): ResumePoint {
    const seq = this.store.seqOf(eventId);
    if (seq !== null) return { kind: 'found', position: seq };
    const range = this.store.seqRange();
    return { kind: 'forgotten', position: range === null ? 0 : range.first - 1 };
  }

  /** Reads `limit` stored events and returns those that pass. Unreadable ones are left out. */
  read(position: FeedPosition, limit: number, matches: (event: ContractEvent) => boolean): FeedPage {
    const rows = this.store.readAfter(position, limit);
    const events: ContractEvent[] = [];
    for (const { event: raw } of rows) {
      const event = this.readable(raw);
      if (event !== null && matches(event)) events.push(event);
    }
    return { events, position: rows.at(-1)?.seq ?? position, atEnd: rows.length < limit };
  }

  private readable(raw: Parameters<typeof decodeEvent>[0]): ContractEvent | null {
    try {
      return decodeEvent(raw, this.decode, this.decodeTopic);
    } catch {
      return null;
    }
  }
}

/** @throws RangeError for a topic pattern that is none. */
export function compileFilter({ contracts, topics }: EventFilter): (event: ContractEvent) => boolean {
  const wanted = new Set(contracts);
  const patterns = topics.map(compileTopicPattern);
  return (event) => {
    if (wanted.size > 0 && !wanted.has(event.contractId)) return false;
    const names = topicNames(event.topics);
    return patterns.length === 0 || patterns.some((matches) => matches(names));
  };
}
