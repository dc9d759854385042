import { PermanentError, TimeoutError } from '../platform/errors';
import type { Logger } from '../platform/logger';
import type { Metrics } from '../platform/metrics';
import { endOfLedger, nextLedger } from './chain-position';
import { isOfAnotherChain, mayHaveBeenPassed, tipOf, type ChainTip, type OtherChain } from './chain-tip';
import { groupContracts, ledgerOf, MAX_GROUP, type ContractGroup } from './contract-groups';
import type { EventQueue } from './event-queue';
import type { EventPage, EventPageResult, EventQuery, EventSource } from './event-source';
import type { Gap, StreamPosition } from './event-store';
import { PageSize } from './page-size';
import { sortEvents } from './raw-event.schema';

export interface EventIntakeOptions {
  source: EventSource;
  queue: EventQueue;
  /** Read beside the followed ones. */
  contractIds: readonly string[];
  /** Where a contract that was never read begins. 0, or left out: the newest ledger. */
  startLedger?: number;
  /** Most events asked for in one page. */
  limit: number;
  /** Open events at which reading pauses until handlers have caught up. */
  maxPending: number;
  /** Told after each page that brought something new. */
  onStored: () => void;
  logger: Logger;
  metrics: Metrics;
}

/**
 * - caught_up: every contract was read up to the newest ledger
 * - lagging: the answering server is behind where we stand already; nothing is missing, it has to catch up
 * - other_chain: the network is not the one that was read until now; nothing is read from it
 * - back_pressure: too much is waiting for handlers
 * - full: the page was not stored and the cursor has not moved
 * - too_heavy: the server can't serve even the smallest page now
 * - aborted: by the signal
 */
export interface IntakeRound {
  kind: 'caught_up' | 'lagging' | 'other_chain' | 'back_pressure' | 'full' | 'too_heavy' | 'aborted';
  stored: number;
  duplicates: number;
  /** As far as known from this round's answers. */
  latestLedger: number | null;
  /** Of a round that ended as `other_chain`: by what that shows. */
  otherChain: OtherChain | null;
}

type Step = { kind: 'more'; position: StreamPosition } | { kind: Exclude<IntakeRound['kind'], 'aborted'> };

/** Ends that would be no different for the other contracts. */
const ENDS_ROUND: ReadonlySet<IntakeRound['kind']> = new Set([
  'other_chain',
  'back_pressure',
  'full',
  'aborted',
]);

/** A second answer of the same kind rules out that one stray server of a pool was asked. */
const GAP_CONFIRMATIONS = 2;

/** Reads pages into the queue until nothing more is there. */
export class EventIntake {
  private readonly pageSize: PageSize;
  private stored = 0;
  private duplicates = 0;
  private latestLedger: number | null = null;
  private otherChain: OtherChain | null = null;

  constructor(private readonly options: EventIntakeOptions) {
    this.pageSize = new PageSize(options.limit, MAX_GROUP);
  }

  /** One pass over all contracts. Rejects when no server answers; what was stored until then stays. */
  async round(signal: AbortSignal): Promise<IntakeRound> {
    this.stored = 0;
    this.duplicates = 0;
    this.latestLedger = null;
    this.otherChain = null;
    let worst: IntakeRound['kind'] = 'caught_up';
    const positions = await this.ensurePositions(signal);
    if (positions === null) return this.ended('full');
    let refusal: PermanentError | null = null;
    for (const group of groupContracts(positions, this.pageSize.contracts)) {
      try {
        const end = await this.readGroup(group, signal);
        if (end !== 'caught_up') worst = end;
        if (ENDS_ROUND.has(end)) break;
      } catch (error) {
        // Too much for the time that an answer may take, perhaps: what is asked for next is lighter.
        if (error instanceof TimeoutError) this.pageSize.reduce();
        if (!(error instanceof PermanentError)) throw error;
        // Refused for what it asks for: that is no reason for the other contracts to wait.
        refusal ??= error;
      }
    }
    if (refusal !== null) throw refusal;
    return this.ended(worst);
  }

  private ended(kind: IntakeRound['kind']): IntakeRound {
    const { stored, duplicates, latestLedger, otherChain } = this;
    return { kind, stored, duplicates, latestLedger, otherChain };
  }

  /** A start is stored before anything is read from it, so that a crash before the first page can't move it. */
  private async ensurePositions(signal: AbortSignal): Promise<Map<string, StreamPosition> | null> {
    const { queue, source, startLedger } = this.options;
    const contractIds = [...new Set([...this.options.contractIds, ...queue.followed.list()])];
    const known = queue.store.positions();
    const fresh = contractIds.filter((contractId) => !known.has(contractId));
    if (fresh.length > 0) {
      // There is no ledger 0, and servers refuse it.
      const position = { startLedger: startLedger || (await source.getLatestLedger(signal)) };
      const gaps = this.gapsOfLostFile(fresh, position.startLedger);
      if (queue.enqueueBatch({ events: [], contractIds: fresh, position, gaps }).kind === 'full') return null;
      this.reportGaps(gaps);
      for (const contractId of fresh) known.set(contractId, position);
    }
    return new Map(contractIds.map((contractId) => [contractId, known.get(contractId) as StreamPosition]));
  }

  private async readGroup(group: ContractGroup, signal: AbortSignal): Promise<IntakeRound['kind']> {
    const { queue, maxPending } = this.options;
    let position = group.position;
    let outOfRange = 0;
    while (!signal.aborted) {
      if (queue.store.countOpen(maxPending) >= maxPending) return 'back_pressure';
      const query: EventQuery = { contractIds: group.contractIds, limit: this.pageSize.events, ...position };
      const answer = await this.options.source.fetchEvents(query, signal);
      const tip = tipIn(answer);
      this.otherChain = tip === null ? null : await this.signOfOtherChain(tip, signal);
      if (this.otherChain !== null) return 'other_chain';
      let step: Step;
      switch (answer.kind) {
        case 'page':
          this.pageSize.served();
          step = this.takePage(group, position, answer.page, tip);
          break;
        case 'too_heavy':
          if (!this.pageSize.reduce()) return 'too_heavy';
          step = { kind: 'more', position };
          break;
        case 'out_of_range': {
          const { oldest, latest } = answer;
          this.latestLedger = Math.max(this.latestLedger ?? 0, latest);
          step = this.takeOutOfRange(group, position, oldest, latest, (outOfRange += 1) >= GAP_CONFIRMATIONS);
        }
      }
      if (step.kind !== 'more') return step.kind;
      position = step.position;
    }
    return 'aborted';
  }

  private async signOfOtherChain(tip: ChainTip, signal: AbortSignal): Promise<OtherChain | null> {
    const seen = this.options.queue.store.tip();
    if (seen === null) return null;
    if (isOfAnotherChain(tip, seen)) return { seen, found: tip };
    if (!mayHaveBeenPassed(tip, seen)) return null;
    const closeTime = await this.options.source.closeTimeOf(seen.ledger, signal);
    const found = tipOf(seen.ledger, closeTime ?? undefined);
    return found !== null && isOfAnotherChain(found, seen) ? { seen, found } : null;
  }

  private takePage(
    group: ContractGroup,
    position: StreamPosition,
    page: EventPage,
    tip: ChainTip | null,
  ): Step {
    const ledger = ledgerOf(position);
    this.latestLedger = Math.max(this.latestLedger ?? 0, page.latestLedger);
    // Beyond the answering server's newest ledger by more than the ledger being closed: another server was ahead of it.
    if (ledger !== null && ledger > page.latestLedger + 1) return { kind: 'lagging' };

    const asked = new Set(group.contractIds);
    const { events, malformed } = sortEvents(page.events);
    const lastId = events.at(-1)?.id;
    const cursor = believable(page.cursor, page.latestLedger) ?? lastId ?? position.cursor;
    const next: StreamPosition = cursor === undefined ? position : { cursor };
    const ours = events.filter(({ contractId }) => asked.has(contractId));
    if (ours.length < events.length) {
      this.options.metrics.count('ingestion_foreign_events_total', {}, events.length - ours.length);
    }
    // Some servers answer a position they no longer keep with what they have, and say nothing.
    const gaps = ledger !== null && ledger < page.oldestLedger ? this.gapsOf(group, page.oldestLedger) : [];
    const result = this.options.queue.enqueueBatch({
      events: ours,
      malformed,
      contractIds: this.stillRead(group),
      position: isBehind(next, position) ? null : next,
      gaps,
      tip,
    });
    if (result.kind === 'full') {
      // Where room is scarce, less at a time may still fit.
      this.pageSize.reduce();
      return { kind: 'full' };
    }
    this.reportGaps(gaps);
    if (result.contradictions > 0) {
      this.options.metrics.count('ingestion_contradictions_total', {}, result.contradictions);
      this.options.logger.error(
        { events: result.contradictions, from: ours[0]?.id, to: lastId },
        'a server has another content under the ids of stored events: a network that began anew, or a fork',
      );
    }
    this.stored += result.inserted;
    if (result.inserted > 0) this.options.onStored();
    this.duplicates += result.duplicates;
    if (cursor === undefined || isBehind(next, position)) return { kind: 'caught_up' };
    const reached = nextLedger(cursor);
    const atTip = reached === null ? page.events.length === 0 : reached > page.latestLedger;
    return atTip || cursor === position.cursor ? { kind: 'caught_up' } : { kind: 'more', position: next };
  }

  /** One that was let go while its page was under way must not get a position again. */
  private stillRead({ contractIds }: ContractGroup): string[] {
    const read = new Set([...this.options.contractIds, ...this.options.queue.followed.list()]);
    return contractIds.filter((contractId) => read.has(contractId));
  }

  private takeOutOfRange(
    group: ContractGroup,
    position: StreamPosition,
    oldest: number,
    latest: number,
    confirmed: boolean,
  ): Step {
    const ledger = ledgerOf(position);
    if (ledger !== null && ledger > latest) return { kind: 'lagging' };
    if (!confirmed) return { kind: 'more', position };
    const next: StreamPosition = { startLedger: oldest };
    // Inside the window, yet refused: the servers behind one address disagree. Another answer will come.
    if (ledger !== null && ledger > oldest) return { kind: 'lagging' };
    const gaps = this.gapsOf(group, oldest);
    const result = this.options.queue.enqueueBatch({
      events: [],
      contractIds: this.stillRead(group),
      position: next,
      gaps,
    });
    if (result.kind === 'full') return { kind: 'full' };
    this.reportGaps(gaps);
    return { kind: 'more', position: next };
  }

  /** Members of a group may have stood at different places; each lost only what was behind its own. */
  private gapsOf(group: ContractGroup, oldest: number): Gap[] {
    const positions = this.options.queue.store.positions();
    return group.contractIds.flatMap((contractId): Gap[] => {
      const position = positions.get(contractId);
      const fromLedger = position === undefined ? null : ledgerOf(position);
      if (fromLedger !== null && fromLedger >= oldest) return [];
      return [{ contractId, fromLedger, toLedger: oldest - 1, reason: 'retention' }];
    });
  }

  /** Beginning at the newest ledger is no news for a new service, but it is for one whose file was set aside. */
  private gapsOfLostFile(fresh: readonly string[], begin: number): Gap[] {
    const { queue, startLedger } = this.options;
    if (queue.setAside === null || (startLedger ?? 0) > 0) return [];
    return fresh.map((contractId) => ({
      contractId,
      fromLedger: null,
      toLedger: begin - 1,
      reason: 'file_lost',
    }));
  }

  private reportGaps(gaps: readonly Gap[]): void {
    for (const gap of gaps) {
      this.options.metrics.count('ingestion_gaps_total', { reason: gap.reason });
      this.options.logger.error(
        { ...gap },
        'these ledgers were not read and can no longer be: events in them are lost to us',
      );
    }
  }
}

function tipIn(answer: EventPageResult): ChainTip | null {
  switch (answer.kind) {
    case 'page':
      return tipOf(answer.page.latestLedger, answer.page.latestLedgerCloseTime);
    case 'out_of_range':
      return tipOf(answer.latest, answer.latestLedgerCloseTime);
    case 'too_heavy':
      return null;
  }
}

/** No server has read beyond its own newest ledger; one that says so would make us skip what is still to come. */
function believable(cursor: string | null, latestLedger: number): string | null {
  const reached = cursor === null ? null : nextLedger(cursor);
  return reached !== null && reached > latestLedger + 1 ? endOfLedger(latestLedger) : cursor;
}

/** A cursor must not go back: a lagging server's tip is no news. Opaque cursors can't be compared and are believed. */
function isBehind(next: StreamPosition, position: StreamPosition): boolean {
  if (next.cursor === undefined || position.cursor === undefined) return false;
  return (
    nextLedger(next.cursor) !== null && nextLedger(position.cursor) !== null && next.cursor < position.cursor
  );
}
