import type { Logger } from '../platform/logger';
import { describeFailure, PermanentError } from '../platform/errors';
import type { Delivery, Route } from './delivery';
import type { DeliveryStore } from './delivery-store';
import { decodeEvent, rememberDecoded } from './event-decoder';
import type { ContractEvent } from './event-handler';
import type { ContractValueDecoder } from './event-source';
import type { EventStore, QueuedRow } from './event-store';
import type { HandlerRegistry } from './handler-registry';

/** Decoded events kept between routing and delivery, which mostly follow at once. */
const CACHE_EVENTS = 600;
/** Decoded topics kept: names and accounts come again and again, and decoding an address is dear. */
const CACHE_TOPICS = 2_000;

/** Decides, once for each stored event, to whom it goes. What can't be decoded is quarantined and holds up nobody. */
export class EventRouter {
  private readonly decoded = new Map<number, ContractEvent>();
  private readonly decodeTopic: ContractValueDecoder;

  constructor(
    private readonly store: EventStore,
    private readonly deliveries: DeliveryStore,
    private readonly registry: HandlerRegistry,
    private readonly decode: ContractValueDecoder,
    private readonly logger: Logger,
  ) {
    this.decodeTopic = rememberDecoded(decode, CACHE_TOPICS);
  }

  /** Routes at most `limit` events. Returns how many; 0 when none are left or another process routes at the same time. */
  routeSome(limit: number): number {
    const { from, rows } = this.deliveries.unrouted(limit);
    if (rows.length === 0) return 0;
    const routes = rows.map((row) => this.routeOf(row));
    return this.deliveries.route(from, routes) ? rows.length : 0;
  }

  /** @throws PermanentError when it can't be decoded any more, or was removed by hand. */
  eventOf({ seq }: Delivery): ContractEvent {
    const remembered = this.decoded.get(seq);
    if (remembered !== undefined) return remembered;
    const raw = this.store.read(seq);
    if (raw === null)
      throw new PermanentError('EVENT_GONE', `event number ${seq} is no longer in the queue file`);
    return decodeEvent(raw, this.decode, this.decodeTopic);
  }

  private routeOf({ seq, contract, event: raw }: QueuedRow): Route {
    try {
      const event = decodeEvent(raw, this.decode, this.decodeTopic);
      const to = this.registry.wanting(event).map(({ handler, retry }) => ({
        handler: handler.name,
        ordered: handler.ordered,
        maxAttempts: retry.maxAttempts,
      }));
      if (to.length > 0) this.remember(seq, event);
      return { kind: 'deliver', seq, contract, to };
    } catch (error) {
      const reason = describeFailure(error).message;
      this.logger.warn({ eventId: raw.id, contractId: raw.contractId, reason }, 'event quarantined');
      return { kind: 'quarantine', seq, reason };
    }
  }

  private remember(seq: number, event: ContractEvent): void {
    if (this.decoded.size >= CACHE_EVENTS) {
      const oldest = this.decoded.keys().next();
      if (oldest.done !== true) this.decoded.delete(oldest.value);
    }
    this.decoded.set(seq, event);
  }
}
