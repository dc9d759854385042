import type { DeadLetterFilter } from '../../ingestion/dead-letters';
import type { DiscardFilter } from '../../ingestion/delivery-discard';
import { ledgerOf } from '../../ingestion/contract-groups';
import type { EventQueue } from '../../ingestion/event-queue';
import { type Answer, exitCodes, facts, table } from '../answer';

export interface Intent {
  operator: string;
  reason: string;
  execute: boolean;
}

const isoTime = (ms: number): string => new Date(ms).toISOString();

export function stats(queue: EventQueue): Answer {
  const counts = queue.getStats();
  const { oldestEventAge, ...numbers } = counts;
  const handlers = queue.deliveries.backlog();
  const positions = Object.fromEntries(queue.store.positions());
  const gaps = queue.store.gaps().length;
  const tip = queue.store.tip();
  const newestLedger =
    tip === null ? null : { ledger: tip.ledger, closedAt: new Date(tip.closedAt).toISOString() };
  return {
    exitCode: exitCodes.done,
    data: { ...counts, handlers, positions, gaps, newestLedger },
    lines: [
      ...facts({
        ...numbers,
        oldestEventAgeMs: oldestEventAge,
        gaps,
        newestLedger: tip?.ledger ?? null,
        newestLedgerClosedAt: newestLedger?.closedAt ?? null,
      }),
      '',
      'Handlers with open deliveries:',
      ...table(
        handlers.map((row) => ({ ...row })),
        ['handler', 'ready', 'waiting', 'leased', 'dead'],
      ),
      '',
      'Contracts, and how many ledgers each is behind the newest one seen (ever more: nothing follows it any longer):',
      ...table(
        Object.entries(positions).map(([contract, position]) => {
          const ledger = ledgerOf(position);
          const behind = tip === null || ledger === null ? null : Math.max(0, tip.ledger + 1 - ledger);
          return { contract, ...position, behind };
        }),
        ['contract', 'cursor', 'startLedger', 'behind'],
      ),
    ],
  };
}

export function failed(
  queue: EventQueue,
  filter: DeadLetterFilter,
  page: { limit: number; afterSeq: number },
): Answer {
  const letters = queue.deadLetters
    .list(filter, page)
    .map(({ diedAt, ...letter }) => ({ ...letter, diedAt: isoTime(diedAt) }));
  const total = queue.deadLetters.count(filter);
  return {
    exitCode: exitCodes.done,
    data: { total, failed: letters },
    lines: [
      ...table(letters, ['seq', 'eventId', 'handler', 'attempts', 'code', 'message', 'diedAt']),
      `${letters.length} of ${total}`,
    ],
  };
}

export function replay(queue: EventQueue, filter: DeadLetterFilter, { execute, ...by }: Intent): Answer {
  const matching = queue.deadLetters.count(filter);
  if (matching === 0) return nothingMatches(queue, filter.handler ?? null, 'nothing failed matches');
  if (!execute) {
    return {
      exitCode: exitCodes.done,
      data: { matching, executed: false },
      lines: [`would replay ${matching}; add --execute to do it`],
    };
  }
  const replayed = queue.deadLetters.replay(filter, by);
  return {
    exitCode: exitCodes.done,
    data: { matching, executed: true, replayed },
    lines: [`replayed ${replayed}`],
  };
}

export function discard(queue: EventQueue, filter: DiscardFilter, { execute, ...by }: Intent): Answer {
  const { matching, inHand } = queue.discards.count(filter);
  if (inHand > 0) {
    return {
      exitCode: exitCodes.refused,
      data: { matching, inHand, executed: false },
      lines: [`a service is handling ${inHand} of them right now: the handler exists`],
    };
  }
  if (matching === 0) return nothingMatches(queue, filter.handler, 'nothing matches');
  if (!execute) {
    return {
      exitCode: exitCodes.done,
      data: { matching, executed: false },
      lines: [`would discard ${matching} for good; add --execute to do it`],
    };
  }
  const discarded = queue.discards.discard(filter, by);
  return {
    exitCode: exitCodes.done,
    data: { matching, executed: true, discarded },
    lines: [`discarded ${discarded}`],
  };
}

/** A name that was mistyped would otherwise look like one with nothing to do. */
function nothingMatches(queue: EventQueue, handler: string | null, line: string): Answer {
  const handlers = queue.deliveries.backlog().map((row) => row.handler);
  if (handler === null || handlers.includes(handler)) {
    return { exitCode: exitCodes.notFound, data: { matching: 0 }, lines: [line] };
  }
  const others = handlers.length === 0 ? 'nor for any other' : `only for ${handlers.join(', ')}`;
  return {
    exitCode: exitCodes.notFound,
    data: { matching: 0, handlers },
    lines: [`there is nothing for the handler ${handler}, ${others}`],
  };
}

export function gaps(queue: EventQueue): Answer {
  const found = queue.store.gaps().map(({ foundAt, ...gap }) => ({ ...gap, foundAt: isoTime(foundAt) }));
  return {
    exitCode: found.length > 0 ? exitCodes.found : exitCodes.done,
    data: { gaps: found },
    lines: table(found, ['contractId', 'fromLedger', 'toLedger', 'reason', 'foundAt']),
  };
}

export function cleanup(
  queue: EventQueue,
  olderThanMs: number,
  { execute, operator, reason }: Intent,
): Answer {
  const matching = queue.maintenance.countExpired(olderThanMs);
  if (!execute) {
    return {
      exitCode: exitCodes.done,
      data: { matching, executed: false },
      lines: [`would remove ${matching} processed events; add --execute to do it`],
    };
  }
  const removed = queue.cleanup(olderThanMs);
  queue.maintenance.shrink();
  queue.deadLetters.note({ action: 'cleanup', operator, reason, details: { olderThanMs, removed } });
  return {
    exitCode: exitCodes.done,
    data: { matching, executed: true, removed },
    lines: [`removed ${removed} processed events`],
  };
}
