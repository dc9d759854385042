import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../platform/clock';
import { describeFailure } from '../platform/errors';
import type { Logger } from '../platform/logger';
import type { Metrics } from '../platform/metrics';
import type { DeliveryBatch, Settlement } from './delivery';
import { DeliveryCall } from './delivery-call';
import type { ContractFollowing } from './event-handler';
import type { EventQueue } from './event-queue';
import type { EventRouter } from './event-router';
import type { HandlerRegistry, RegisteredHandler } from './handler-registry';
import { isFull } from './queue-file';
import { WakeUp } from './wake-up';

export interface DispatcherOptions {
  queue: EventQueue;
  registry: HandlerRegistry;
  router: EventRouter;
  following: ContractFollowing;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
  /** How often to look for work that nobody announced, milliseconds. */
  processIntervalMs: number;
  /** Renewed at a third of it while a call runs. Must be the queue's own. */
  leaseMs: number;
  /** A handler call that runs longer is aborted and counts as failed. */
  handlerTimeoutMs: number;
  /** Calls at one time over all handlers. Each handler may have one regardless, so that no priority starves. */
  maxCalls: number;
}

const ROUTE_BATCH = 500;

/** Hands stored events to the handlers that want them, and records how each delivery ended. */
export class Dispatcher {
  private readonly calls = new Set<DeliveryCall>();
  private readonly wakeUp = new WakeUp();
  private alone: DeliveryCall | null = null;
  /** Ended calls whose results are not in the file yet. */
  private finished: Settlement[] = [];
  private reclaimAtMs = 0;
  private loop: Promise<void> | null = null;
  private stopping = false;
  private renewal: NodeJS.Timeout | undefined;

  constructor(private readonly options: DispatcherOptions) {}

  start(): void {
    if (this.loop !== null) return;
    this.stopping = false;
    this.keepLeases();
    this.loop = this.run();
  }

  /** Looks for work now rather than at the next tick. */
  wake(): void {
    this.wakeUp.notify();
  }

  /** Delivers until nothing is due and no call runs. A started loop does that already, and goes on doing it. */
  async drain(): Promise<void> {
    if (this.loop !== null) {
      this.wake();
      return;
    }
    this.keepLeases();
    try {
      for (;;) {
        if (this.pump()) await nextTurn();
        else if (this.calls.size > 0) await this.wakeUp.wait(this.options.processIntervalMs);
        else return;
      }
    } finally {
      clearInterval(this.renewal);
    }
  }

  /** Takes nothing new, waits for running calls up to `graceMs`, then aborts them and gives their events back. */
  async stop(graceMs: number): Promise<void> {
    this.stopping = true;
    this.wake();
    await this.loop;
    this.loop = null;
    const deadlineMs = this.options.clock.monotonicMs() + graceMs;
    while (this.calls.size > 0 && this.options.clock.monotonicMs() < deadlineMs) {
      await this.wakeUp.wait(deadlineMs - this.options.clock.monotonicMs());
    }
    clearInterval(this.renewal);
    for (const call of this.calls) {
      call.abort();
      this.finished.push(
        ...call.batch.map((delivery): Settlement => ({ delivery, result: { kind: 'unused' } })),
      );
    }
    this.calls.clear();
    try {
      this.flush();
    } catch (error) {
      // What could not be recorded is delivered again once its lease has ended.
      this.onStorageError(error);
    }
  }

  private async run(): Promise<void> {
    while (!this.stopping) {
      let idleMs = this.options.processIntervalMs;
      try {
        idleMs = this.pump() ? 0 : this.idleMs();
      } catch (error) {
        this.onStorageError(error);
      }
      await (idleMs === 0 ? nextTurn() : this.wakeUp.wait(idleMs));
    }
  }

  /** One round: results in, due work out. True when there was any. */
  private pump(): boolean {
    const { queue, router, clock, leaseMs } = this.options;
    const flushed = this.flush();
    if (clock.monotonicMs() >= this.reclaimAtMs) {
      this.reclaimAtMs = clock.monotonicMs() + leaseMs / 4;
      // Ours first: after a pause of the whole process (a suspended host) they look like those of a dead one.
      this.renewLeases();
      queue.deliveries.reclaim();
    }
    queue.deliveries.promoteDue();
    const first = this.claim();
    // Not further ahead than handlers can take: what was just decoded for routing is still at hand for them.
    const routed = first.isHungry ? router.routeSome(ROUTE_BATCH) : 0;
    const claimed = first.calls + (routed > 0 ? this.claim().calls : 0);
    return flushed + routed + claimed > 0;
  }

  /** A suspect goes alone: nothing new is taken until running calls have ended, then it runs, then all goes on. */
  private claim(): { calls: number; isHungry: boolean } {
    const { registry, queue } = this.options;
    if (this.alone !== null && this.calls.has(this.alone)) return { calls: 0, isHungry: false };
    const names = registry.all().map(({ handler }) => handler.name);
    if (!queue.deliveries.hasSuspect(names)) {
      const slots = this.freeSlots();
      const batches = queue.deliveries.claim(slots);
      for (const batch of batches) this.begin(batch);
      const offered = slots.reduce((sum, request) => sum + request.slots, 0);
      return { calls: batches.length, isHungry: batches.length < offered || slots.length === 0 };
    }
    const suspect = this.calls.size > 0 ? null : queue.deliveries.claimSuspect(names);
    if (suspect === null) return { calls: 0, isHungry: false };
    this.alone = this.begin(suspect);
    return { calls: 1, isHungry: false };
  }

  private freeSlots() {
    const running = new Map<string, number>();
    for (const { handlerName } of this.calls) running.set(handlerName, (running.get(handlerName) ?? 0) + 1);
    let free = this.options.maxCalls - this.calls.size;
    return this.options.registry.all().map(({ handler }) => {
      const mine = running.get(handler.name) ?? 0;
      const slots = Math.max(Math.min(handler.concurrency - mine, free), mine === 0 ? 1 : 0);
      free -= slots;
      return { handler: handler.name, ordered: handler.ordered, batch: handler.batch, slots };
    });
  }

  private begin(batch: DeliveryBatch): DeliveryCall {
    const { router, following, clock, logger, metrics, handlerTimeoutMs: timeoutMs } = this.options;
    const registered = this.registeredFor(batch);
    const eventOf = router.eventOf.bind(router);
    const call = new DeliveryCall({ registered, batch, eventOf, timeoutMs, following, clock, logger });
    this.calls.add(call);
    const startedMs = clock.monotonicMs();
    void call.run().then((settlements) => {
      metrics.observe('ingestion_handler_duration_ms', clock.monotonicMs() - startedMs, {
        handler: call.handlerName,
      });
      // A call that was given up at shutdown, or whose lease was lost, has been settled without it.
      if (!this.calls.delete(call)) return;
      this.finished.push(...settlements);
      this.wake();
    });
    return call;
  }

  private registeredFor(batch: DeliveryBatch): RegisteredHandler {
    const name = batch[0]?.handler;
    const registered = this.options.registry.all().find(({ handler }) => handler.name === name);
    if (registered === undefined) throw new Error(`claimed for ${name}, which is not registered`);
    return registered;
  }

  private flush(): number {
    const settlements = this.finished;
    if (settlements.length === 0) return 0;
    this.options.queue.deliveries.settle(settlements);
    this.finished = [];
    for (const { delivery, result } of settlements) {
      this.options.metrics.count('ingestion_deliveries_total', {
        handler: delivery.handler,
        outcome: result.kind,
      });
      if (result.kind === 'dead') {
        const { seq, handler } = delivery;
        this.options.logger.error(
          { seq, handler, code: result.code, reason: result.message },
          'event dead-lettered',
        );
      }
    }
    return settlements.length;
  }

  private keepLeases(): void {
    clearInterval(this.renewal);
    this.renewal = setInterval(() => this.renewLeases(), this.options.leaseMs / 3);
    this.renewal.unref();
  }

  private renewLeases(): void {
    try {
      for (const call of this.calls) {
        if (this.options.queue.deliveries.renew(call.batch).length === 0) continue;
        call.abort();
        this.calls.delete(call);
        this.options.logger.warn({ handler: call.handlerName }, 'delivery lease lost: the call was aborted');
      }
    } catch (error) {
      this.onStorageError(error);
    }
  }

  private idleMs(): number {
    const { queue, clock, processIntervalMs } = this.options;
    const dueAt = queue.deliveries.nextDueAt();
    return dueAt === null ? processIntervalMs : Math.max(1, Math.min(processIntervalMs, dueAt - clock.now()));
  }

  /** Results stay in memory and hold their slots until they can be written: nothing is lost, and nothing more is taken. */
  private onStorageError(error: unknown): void {
    if (isFull(error)) this.options.queue.makeRoom();
    this.options.logger.error({ ...describeFailure(error) }, 'the event queue file could not be written');
  }
}
