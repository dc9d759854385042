import { sleep, type Clock } from '../../platform/clock';
import type { Logger } from '../../platform/logger';
import type { RpcPool } from '../rpc/rpc-pool';
import type { AttemptTracker } from './attempt-tracker';
import type { ChannelPool } from './channel-pool';
import type { SubmissionRepository } from './submission-repository';

export interface SubmissionRecoveryOptions {
  pool: RpcPool;
  submissions: SubmissionRepository;
  channelPools: readonly ChannelPool[];
  tracker: AttemptTracker;
  intervalMs: number;
  clock: Clock;
  logger: Logger;
}

export interface SweepReport {
  /** Attempts that the chain turned out to have decided. */
  settled: number;
  /** Attempts past their validity that could not be decided yet. */
  undecided: number;
  /** Source accounts that were freed. */
  freed: number;
}

const SWEEP_LIMIT = 100;
/** For nodes that are a ledger or two behind. */
const GRACE_SECONDS = 10;

/**
 * Sees to what nobody follows any more: the job died, or its process did and no one came back. Sends nothing; it waits
 * for the validity to end and finds out what happened, so that no source account stays held. Any number of processes
 * may sweep at once.
 */
export class SubmissionRecovery {
  private stopping: AbortController | null = null;
  private running: Promise<void> = Promise.resolve();

  constructor(private readonly options: SubmissionRecoveryOptions) {}

  async sweep(signal: AbortSignal): Promise<SweepReport> {
    const { pool, submissions, channelPools, tracker, clock, logger } = this.options;
    // Only a hint where to look; the tracker decides by ledgers.
    const nowSeconds = Math.floor((pool.chainTimeMs() ?? clock.now()) / 1000);
    const report: SweepReport = { settled: 0, undecided: 0, freed: 0 };
    for (const submission of await submissions.overdue(nowSeconds - GRACE_SECONDS, SWEEP_LIMIT)) {
      signal.throwIfAborted();
      if (submission.attempt === null) continue;
      try {
        const verdict = await tracker.follow(submission, submission.attempt, signal);
        report[verdict.kind === 'settled' ? 'settled' : 'undecided'] += 1;
      } catch (error) {
        signal.throwIfAborted();
        // One that can't be decided must not keep the others from it.
        report.undecided += 1;
        logger.warn({ err: error, intent: submission._id }, 'an overdue transaction could not be decided');
      }
    }
    for (const channels of channelPools) report.freed += await channels.reclaim();
    return report;
  }

  /** Sweeps at intervals, through outages, until {@link stop}. */
  start(): void {
    if (this.stopping !== null) return;
    this.stopping = new AbortController();
    this.running = this.run(this.stopping.signal);
  }

  async stop(): Promise<void> {
    this.stopping?.abort();
    this.stopping = null;
    await this.running;
  }

  private async run(signal: AbortSignal): Promise<void> {
    const { intervalMs, logger } = this.options;
    const isStopping = (): boolean => signal.aborted;
    while (!isStopping()) {
      try {
        const report = await this.sweep(signal);
        if (report.settled + report.undecided + report.freed > 0) logger.info(report, 'submissions swept');
      } catch (error) {
        if (!isStopping()) logger.warn({ err: error }, 'sweep of submissions failed; it is repeated');
      }
      await sleep(intervalMs * (0.5 + Math.random()), signal);
    }
  }
}
