import { performance } from 'node:perf_hooks';
import type { WebSocket } from 'ws';
import type { EventFeed, FeedPosition } from '../ingestion/event-feed';
import type { ContractEvent } from '../ingestion/event-handler';
import { eventToJson } from '../ingestion/event-json';
import { describeFailure } from '../platform/errors';
import type { Logger } from '../platform/logger';

export interface EventStreamClientOptions {
  webSocket: WebSocket;
  feed: EventFeed;
  matches: (event: ContractEvent) => boolean;
  /** Id of the last event that the client has. Null: only what comes from now on. */
  after: string | null;
  stallMs: number;
  maxBufferedBytes: number;
  logger: Logger;
}

/** RFC 6455 close codes. */
export const closeCodes = { goingAway: 1001, internalError: 1011, tryAgainLater: 1013 } as const;

const READ_EVENTS = 100;
const PAGES_A_TURN = 5;
/** A client that doesn't read can't read its close frame either: after this it is cut off. */
const CLOSE_GRACE_MS = 2_000;

/**
 * One reader with a place of its own in the feed. It is read for only as fast as it takes what it was sent, so what
 * waits in memory for it is bounded, however far behind it is.
 */
export class EventStreamClient {
  private position: FeedPosition = 0;
  private lastSentId: string | null = null;
  private isAlive = true;
  private isDropped = false;
  private blockedSinceMs: number | null = null;
  private lowestBuffered = 0;

  constructor(private readonly options: EventStreamClientOptions) {}

  start(): void {
    const { webSocket, feed, after, logger } = this.options;
    webSocket.on('pong', () => (this.isAlive = true));
    webSocket.on('error', (error) =>
      logger.debug({ ...describeFailure(error) }, 'event stream client failed'),
    );
    this.guarded(() => {
      if (after === null) this.position = feed.end();
      else {
        const resumed = feed.resumeAfter(after);
        this.position = resumed.position;
        this.lastSentId = after;
        if (resumed.kind === 'forgotten') {
          this.send({
            type: 'gap',
            after,
            reason: 'this event is no longer kept: some behind it may be missing',
          });
        }
      }
      this.send({ type: 'ready' });
      this.advance();
    });
  }

  /** Sends what is new, unless enough waits for the client already. */
  advance(): void {
    if (this.isDropped) return;
    this.guarded(() => {
      for (let pages = 0; !this.isBlocked(); pages += 1) {
        // Far behind, or looking for what is rare: others get their turn in between.
        if (pages === PAGES_A_TURN) {
          setImmediate(() => this.advance());
          return;
        }
        const page = this.options.feed.read(this.position, READ_EVENTS, this.options.matches);
        for (const event of page.events) {
          this.send({ type: 'event', event: eventToJson(event) }, this.goOn);
          this.lastSentId = event.id;
        }
        this.position = page.position;
        if (page.atEnd) return;
      }
    });
  }

  /** Asks whether the client is still there; one that did not answer the last time is cut off. */
  beat(): void {
    const { webSocket } = this.options;
    if (this.isDropped) return;
    if (!this.isAlive) {
      this.drop(closeCodes.goingAway, 'no answer to the heartbeat');
      return;
    }
    this.isAlive = false;
    webSocket.ping();
    // Browsers hide pings from their scripts, so the heartbeat is a message as well.
    if (!this.isBlocked()) this.send({ type: 'heartbeat', lastEventId: this.lastSentId });
  }

  drop(code: number, reason: string): void {
    if (this.isDropped) return;
    this.isDropped = true;
    const { webSocket, logger } = this.options;
    logger.info({ code, reason, lastEventId: this.lastSentId }, 'event stream client dropped');
    webSocket.close(code, reason);
    setTimeout(() => webSocket.terminate(), CLOSE_GRACE_MS).unref();
  }

  /** Over the limit. Taking anything at all counts as progress; none for `stallMs` ends the connection. */
  private isBlocked(): boolean {
    const { webSocket, maxBufferedBytes, stallMs } = this.options;
    const buffered = webSocket.bufferedAmount;
    if (buffered <= maxBufferedBytes) {
      this.blockedSinceMs = null;
      return this.isDropped;
    }
    if (this.blockedSinceMs === null || buffered < this.lowestBuffered) {
      this.blockedSinceMs = performance.now();
      this.lowestBuffered = buffered;
    } else if (performance.now() - this.blockedSinceMs > stallMs) {
      const resume = this.lastSentId === null ? '' : `; resume with after=${this.lastSentId}`;
      this.drop(closeCodes.tryAgainLater, `too slow${resume}`);
    }
    return true;
  }

  /** Reading stopped because too much was waiting, and some of it has left. */
  private readonly goOn = (): void => {
    if (this.blockedSinceMs !== null) this.advance();
  };

  private send(message: object, whenSent?: () => void): void {
    this.options.webSocket.send(JSON.stringify(message), whenSent);
  }

  private guarded(step: () => void): void {
    try {
      step();
    } catch (error) {
      this.options.logger.error({ ...describeFailure(error) }, 'the event stream could not be read');
      this.drop(closeCodes.internalError, 'the event stream could not be read');
    }
  }
}
