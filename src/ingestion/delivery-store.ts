import type Database from 'better-sqlite3';
import type { Clock } from '../platform/clock';
import { PermanentError } from '../platform/errors';
import type { WorkerId } from '../platform/ids';
import type {
  ClaimRequest,
  Delivery,
  DeliveryBatch,
  DeliveryToken,
  HandlerBacklog,
  Route,
  Settlement,
} from './delivery';
import { isHolderGone } from './delivery-holder';
import { CRASHES_TO_GIVE_UP, prepareDeliveryStatements } from './delivery-statements';
import { readEventData } from './event-data';
import type { QueuedRow } from './event-store';
import type { QueueFile } from './queue-file';

/** Who takes events out of this file: handlers through the dispatcher, or a caller of `dequeue`. Never both. */
export type ConsumerMode = 'direct' | 'handlers';
const MODE_NUMBER: Record<ConsumerMode, number> = { direct: 1, handlers: 2 };

export interface Unrouted {
  /** Where routing stood when these rows were read; {@link DeliveryStore.route} refuses if it has moved since. */
  from: number;
  rows: QueuedRow[];
}

/** Smaller corrections of the clock are not worth a write. */
const CLOCK_STEP_MS = 1_000;

interface ClaimableRow {
  seq: number;
  attempts: number;
  maxAttempts: number;
}
interface LeasedRow extends ClaimableRow {
  handler: string;
  crashes: number;
  leaseToken: DeliveryToken;
  leaseUntil: number;
}

/**
 * What is owed to which handler. Every claim is a lease in this file, so several processes can work from it; every
 * later write names the lease's token and does nothing where another has taken over.
 */
export class DeliveryStore {
  private readonly db: Database.Database;
  private readonly sql;
  private tokens = 0;
  private latestMs = 0;
  /** Per ordered handler: the contract served last, so that a busy one can't starve those behind it. */
  private readonly lastLane = new Map<string, number>();

  constructor(
    file: QueueFile,
    private readonly clock: Clock,
    private readonly holder: WorkerId,
    private readonly leaseMs: number,
    private readonly mode: ConsumerMode,
  ) {
    this.db = file.db;
    this.sql = prepareDeliveryStatements(file.db);
  }

  /** The oldest events that no route was decided for yet. */
  unrouted(limit: number): Unrouted {
    const from = this.counter('routedThrough');
    const rows = this.sql.unrouted.all(from, limit) as {
      seq: number;
      contract: number;
      eventData: string | Buffer;
    }[];
    return {
      from,
      rows: rows.map(({ seq, contract, eventData }) => ({ seq, contract, event: readEventData(eventData) })),
    };
  }

  /** Writes the routes of one {@link Unrouted}, in its order. False when another process was first: nothing is written. */
  route(from: number, routes: readonly Route[]): boolean {
    const last = routes.at(-1);
    if (last === undefined) return true;
    return this.db
      .transaction(() => {
        if (this.counter('routedThrough') !== from) return false;
        this.assertMode();
        for (const route of routes) {
          if (route.kind === 'quarantine') {
            this.sql.quarantine.run(route.reason, this.clock.now(), route.seq);
            continue;
          }
          for (const { handler, ordered, maxAttempts } of route.to) {
            this.sql.insertDelivery.run(route.seq, handler, ordered ? route.contract : 0, maxAttempts);
          }
          if (route.to.length === 0) this.project(route.seq, 0);
        }
        this.sql.setCounter.run(last.seq, 'routedThrough');
        return true;
      })
      .immediate();
  }

  /** Leases what may be delivered now. Counts the attempt, so that a crash costs one. */
  claim(requests: readonly ClaimRequest[]): DeliveryBatch[] {
    const promising = requests.filter(
      ({ handler, slots }) => slots > 0 && this.sql.anyReady.get(handler) !== undefined,
    );
    if (promising.length === 0) return [];
    return this.db
      .transaction(() =>
        promising.flatMap((request) =>
          this.pick(request).map((rows) => rows.map((row) => this.lease(request.handler, row))),
        ),
      )
      .immediate();
  }

  /** True when something waits to be delivered with nothing else beside it: see {@link claimSuspect}. */
  hasSuspect(handlers: readonly string[]): boolean {
    return this.sql.suspect.get(JSON.stringify(handlers)) !== undefined;
  }

  /** Leases the oldest delivery that may be what kills its process. To be called while nothing else runs. */
  claimSuspect(handlers: readonly string[]): DeliveryBatch | null {
    return this.db
      .transaction(() => {
        const row = this.sql.suspect.get(JSON.stringify(handlers)) as
          (ClaimableRow & { handler: string }) | undefined;
        return row === undefined ? null : [this.lease(row.handler, row)];
      })
      .immediate();
  }

  /** Writes results. Returns the deliveries whose lease was lost: theirs was not written. */
  settle(settlements: readonly Settlement[]): Settlement[] {
    if (settlements.length === 0) return [];
    return this.db
      .transaction(() => settlements.filter((settlement) => !this.settleOne(settlement)))
      .immediate();
  }

  /** Extends leases. Returns those that are lost. */
  renew<D extends Pick<Delivery, 'seq' | 'handler' | 'token'>>(deliveries: readonly D[]): D[] {
    if (deliveries.length === 0) return [];
    const until = this.clock.now() + this.leaseMs;
    return this.db
      .transaction(() =>
        deliveries.filter(
          ({ seq, handler, token }) => this.sql.renew.run(until, seq, handler, token).changes === 0,
        ),
      )
      .immediate();
  }

  /** Makes ready what has waited long enough. Returns how many. */
  promoteDue(): number {
    const now = this.clock.now();
    // A clock that was put back would make what waits for a second wait for as much longer.
    if (this.latestMs - now > CLOCK_STEP_MS) this.sql.shiftDue.run(this.latestMs - now);
    this.latestMs = now;
    return this.sql.anyDue.get(now) === undefined ? 0 : this.sql.promoteDue.run(now).changes;
  }

  /**
   * Takes back leases that ended, and those of processes of this host that are gone. The attempt stays counted. A handler
   * has many events in hand when its process dies, so there it takes several deaths, the last ones alone with the
   * process, to give one up: bystanders must not die with the culprit. Returns how many were taken back.
   */
  reclaim(): number {
    const now = this.clock.now();
    const isOver = (row: LeasedRow): boolean => row.leaseUntil <= now || isHolderGone(row.leaseToken);
    const over = (this.sql.leased.all() as LeasedRow[]).filter(isOver);
    if (over.length === 0) return 0;
    return this.db.transaction(() => over.filter((row) => this.takeBack(row, now)).length).immediate();
  }

  /** Earliest time at which something that waits becomes due, epoch milliseconds, or null. */
  nextDueAt(): number | null {
    return (this.sql.nextDueAt.pluck().get() as number | null | undefined) ?? null;
  }

  backlog(): HandlerBacklog[] {
    return this.sql.backlog.all() as HandlerBacklog[];
  }

  private pick(request: ClaimRequest): ClaimableRow[][] {
    return request.ordered ? this.pickOrdered(request) : this.pickAny(request);
  }

  private pickAny({ handler, batch, slots }: ClaimRequest): ClaimableRow[][] {
    const rows = this.sql.ready.all(handler, 0, Number.MAX_SAFE_INTEGER, batch * slots) as ClaimableRow[];
    const batches: ClaimableRow[][] = [];
    let fresh: ClaimableRow[] = [];
    for (const row of rows) {
      if (batches.length + (fresh.length > 0 ? 1 : 0) >= slots && (row.attempts > 0 || fresh.length === 0))
        break;
      // What has failed goes alone, so that it can't drag others down with it again.
      if (row.attempts > 0) batches.push([row]);
      else if (fresh.push(row) === batch) {
        batches.push(fresh);
        fresh = [];
      }
    }
    if (fresh.length > 0) batches.push(fresh);
    return batches;
  }

  private pickOrdered({ handler, batch, slots }: ClaimRequest): ClaimableRow[][] {
    const batches: ClaimableRow[][] = [];
    const start = this.lastLane.get(handler) ?? 0;
    let lane = start;
    let wrapped = false;
    while (batches.length < slots) {
      const next = this.sql.nextLane.pluck().get(handler, lane) as number | null;
      if (next === null || (wrapped && next > start)) {
        if (wrapped || start === 0) break;
        wrapped = true;
        lane = 0;
        continue;
      }
      lane = next;
      if (this.sql.laneBusy.get(handler, lane) !== undefined) continue;
      const heldUpFrom =
        (this.sql.firstHeld.pluck().get(handler, lane) as number | null) ?? Number.MAX_SAFE_INTEGER;
      const rows = this.sql.ready.all(handler, lane, heldUpFrom, batch) as ClaimableRow[];
      const firstFailed = rows.findIndex(({ attempts }) => attempts > 0);
      const run = firstFailed === -1 ? rows : rows.slice(0, Math.max(firstFailed, 1));
      if (run.length > 0) {
        batches.push(run);
        this.lastLane.set(handler, lane);
      }
    }
    return batches;
  }

  private lease(handler: string, { seq, attempts, maxAttempts }: ClaimableRow): Delivery {
    const token = `${this.holder}#${(this.tokens += 1)}` as DeliveryToken;
    const attempt = attempts + 1;
    this.sql.lease.run(attempt, token, this.clock.now() + this.leaseMs, seq, handler);
    // With handlers, an event in hand is told by its deliveries alone: one write less for each of them.
    if (this.mode === 'direct') this.sql.setOpen.run('processing', attempt, seq);
    return { seq, handler, token, attempt, maxAttempts };
  }

  private takeBack(
    { seq, handler, leaseToken: token, attempts, maxAttempts, ...row }: LeasedRow,
    now: number,
  ): boolean {
    this.sql.noteCrash.run(seq, handler, token);
    const crashes = row.crashes + 1;
    const isSpent = this.mode === 'direct' ? attempts >= maxAttempts : crashes >= CRASHES_TO_GIVE_UP;
    const died = { code: 'HANDLER_DIED', message: `the process died while handling it, ${crashes} times` };
    const result = isSpent
      ? ({ kind: 'dead', ...died } as const)
      : ({ kind: 'retry', dueAt: now, ...died } as const);
    return this.settleOne({ delivery: { seq, handler, token, attempt: attempts }, result });
  }

  private settleOne({ delivery: { seq, handler, token, attempt }, result }: Settlement): boolean {
    const written = ((): number => {
      switch (result.kind) {
        case 'done':
          return this.sql.remove.run(seq, handler, token).changes;
        case 'retry':
          return this.sql.retry.run(result.dueAt, result.code, result.message, seq, handler, token).changes;
        case 'postponed':
          return this.sql.postpone.run(result.dueAt, result.reason, seq, handler, token).changes;
        case 'dead':
          return this.sql.kill.run(this.clock.now(), result.code, result.message, seq, handler, token)
            .changes;
        case 'unused':
          return this.sql.handBack.run(seq, handler, token).changes;
      }
    })();
    if (written === 0) return false;
    if (result.kind === 'retry' || result.kind === 'dead') this.sql.setError.run(result.message, seq);
    this.project(seq, attempt);
    return true;
  }

  /** Derives an event's status from its deliveries: the one rule, whoever changed them. */
  project(seq: number, attempt: number): void {
    const states = this.sql.states.pluck().all(seq) as string[];
    if (states.includes('leased')) this.sql.setOpen.run('processing', attempt, seq);
    else if (states.some((state) => state !== 'dead')) this.sql.setOpen.run('pending', attempt, seq);
    else if (states.length > 0) this.sql.setFinal.run('failed', 2, this.clock.now(), attempt, seq);
    else this.sql.setFinal.run('processed', 1, this.clock.now(), attempt, seq);
  }

  private counter(name: string): number {
    return this.sql.counter.pluck().get(name) as number;
  }

  private assertMode(): void {
    this.sql.claimMode.run(MODE_NUMBER[this.mode]);
    if (this.counter('consumers') === MODE_NUMBER[this.mode]) return;
    throw new PermanentError(
      'EVENT_QUEUE_CONSUMERS',
      'this queue file is emptied by handlers or by dequeue(), whichever came first, and never by both',
    );
  }
}
