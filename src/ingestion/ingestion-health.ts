import type { Failure } from '../platform/errors';
import type { HandlerBacklog } from './delivery';
import type { IntakeRound } from './event-intake';
import type { RecordedGap } from './event-store';
import type { EventQueueStats } from './queue-stats';

export interface IngestionHealth {
  healthy: boolean;
  /** Why not, in words for an operator. */
  problems: string[];
  role: 'leading' | 'following' | 'stopped';
  /** How the last round ended, and when (epoch milliseconds). Null before the first and for a follower. */
  lastRound: { kind: IntakeRound['kind']; at: number } | null;
  /** Since when no round has caught up, epoch milliseconds. Null when the last one did, and for a follower. */
  behindSince: number | null;
  /** Ledgers between the rearmost contract and the newest known one. Null before the first answer. */
  lagLedgers: number | null;
  /** Rounds in a row that met an error, and the last of these. */
  failures: number;
  lastFailure: Failure | null;
  /** True from a page that found no room until one that did. */
  storageFull: boolean;
  queue: EventQueueStats;
  handlers: HandlerBacklog[];
  gaps: RecordedGap[];
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
  const recentGaps = health.gaps.filter(({ foundAt }) => now - foundAt < GAP_IS_NEWS_MS).length;
  const checks: [boolean, string][] = [
    [health.storageFull, 'the event queue is full: intake waits for room'],
    [health.failures > 0, `no server answered in the last ${health.failures} rounds`],
    [health.queue.failed > 0, `${health.queue.failed} events were given up or could not be read`],
    [
      health.queue.oldestEventAge > limits.maxEventAgeMs,
      'handlers are behind: the oldest open event is too old',
    ],
    [
      health.behindSince !== null && now - health.behindSince > limits.maxEventAgeMs,
      `reading is not up to date: its last round ended as ${health.lastRound?.kind ?? ''}`,
    ],
    [(health.lagLedgers ?? 0) > limits.maxLagLedgers, `${health.lagLedgers ?? 0} ledgers behind the network`],
    [recentGaps > 0, `${recentGaps} gaps in the last day: events that no server had any more`],
    [health.setAside !== null, `a corrupt queue file was set aside as ${health.setAside ?? ''}`],
  ];
  return checks.filter(([holds]) => holds).map(([, problem]) => problem);
}
