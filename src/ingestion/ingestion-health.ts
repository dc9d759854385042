import type { Failure } from '../platform/errors';
import type { HandlerBacklog } from './delivery';
import type { ChainTip, OtherChain } from './chain-tip';
import type { IntakeRound } from './event-intake';
import type { RecordedGap } from './event-store';
import type { EventQueueStats } from './queue-stats';

type Told<T> = Omit<T, 'closedAt'> & { closedAt: string };

/** All times are ISO 8601. */
export interface IngestionHealth {
  healthy: boolean;
  /** Why not, in words for an operator. */
  problems: string[];
  role: 'leading' | 'following' | 'stopped';
  /** How the last round ended, and when. Null before the first and for a follower. */
  lastRound: { kind: IntakeRound['kind']; at: string } | null;
  /** Since when no round has caught up. Null when the last one did, and for a follower. */
  behindSince: string | null;
  /** The network that is there now is not the one that was read: its newest ledgers. Else null. */
  otherChain: { seen: Told<ChainTip>; found: Told<ChainTip> } | null;
  /**
   * Ledgers between the rearmost contract and the newest known one. Null before the first answer, and while the servers
   * are behind where we stand.
   */
  lagLedgers: number | null;
  /** Rounds in a row that met an error, and the last of these. */
  failures: number;
  lastFailure: Failure | null;
  /** True from a page that found no room until one that did. */
  storageFull: boolean;
  queue: EventQueueStats;
  handlers: HandlerBacklog[];
  gaps: (Omit<RecordedGap, 'foundAt'> & { foundAt: string })[];
  /** Where a corrupt queue file was moved to at the start of this process. */
  setAside: string | null;
}

export interface HealthThresholds {
  /** An open event older than this means that handlers don't keep up, milliseconds. Reading may be behind for as long. */
  maxEventAgeMs: number;
  maxLagLedgers: number;
}

/** A new gap is news for an operator; one that was looked at a day ago is not. */
const GAP_IS_NEWS_MS = 24 * 60 * 60 * 1000;

export function problemsOf(
  health: Omit<IngestionHealth, 'healthy' | 'problems'>,
  limits: HealthThresholds,
  now: number,
): string[] {
  const ageMs = (time: string): number => now - Date.parse(time);
  const recentGaps = health.gaps.filter(({ foundAt }) => ageMs(foundAt) < GAP_IS_NEWS_MS).length;
  const { otherChain, behindSince } = health;
  const checks: [boolean, string][] = [
    [health.storageFull, 'the event queue is full: intake waits for room'],
    [otherChain !== null, otherChain === null ? '' : startOver(otherChain)],
    [
      health.failures > 0,
      `${health.failures === 1 ? 'the last round' : `each of the last ${health.failures} rounds`} met an error: ` +
        (health.lastFailure?.message ?? ''),
    ],
    [
      health.queue.failed > 0,
      `${counted(health.queue.failed, 'event')} given up, or not readable (sorolane events failed)`,
    ],
    [
      health.queue.oldestEventAge > limits.maxEventAgeMs,
      'handlers are behind: the oldest open event is too old',
    ],
    [
      otherChain === null && behindSince !== null && ageMs(behindSince) > limits.maxEventAgeMs,
      `reading is not up to date since ${behindSince ?? ''}: ${reasonOf(health.lastRound?.kind)}`,
    ],
    [
      (health.lagLedgers ?? 0) > limits.maxLagLedgers,
      `${counted(health.lagLedgers ?? 0, 'ledger')} behind the network`,
    ],
    [recentGaps > 0, `${counted(recentGaps, 'gap')} in the last day: events that no server had any more`],
    [health.setAside !== null, `a corrupt queue file was set aside as ${health.setAside ?? ''}`],
  ];
  return checks.filter(([holds]) => holds).map(([, problem]) => problem);
}

export function describeOtherChain(chain: OtherChain | null): IngestionHealth['otherChain'] {
  if (chain === null) return null;
  const told = ({ ledger, closedAt }: ChainTip): Told<ChainTip> => ({
    ledger,
    closedAt: new Date(closedAt).toISOString(),
  });
  return { seen: told(chain.seen), found: told(chain.found) };
}

function startOver({ seen, found }: NonNullable<IngestionHealth['otherChain']>): string {
  return (
    `the network began anew: its ledger ${found.ledger} closed at ${found.closedAt}, though ledger ${seen.ledger} ` +
    `closed at ${seen.closedAt}. Nothing is read from it: stop, move the queue file (EVENT_QUEUE_PATH) away, and give the ` +
    'new network a database of its own (MONGODB_URI). Where it is the old network after all, set EVENT_CURSOR for one start'
  );
}

function reasonOf(kind: IntakeRound['kind'] | undefined): string {
  return kind === 'lagging'
    ? 'the servers are behind the ledger that was read last (lagging)'
    : `its last round ended as ${kind ?? 'none'}`;
}

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;
