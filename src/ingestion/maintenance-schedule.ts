import { setImmediate as nextTurn } from 'node:timers/promises';
import { sleep } from '../platform/clock';
import { describeFailure } from '../platform/errors';
import type { Logger } from '../platform/logger';
import type { EventQueue } from './event-queue';

export interface MaintenanceOptions {
  queue: EventQueue;
  logger: Logger;
  intervalMs: number;
  /** Processed events older than this are removed. */
  retentionMs: number;
  /** Processed events older than this are compressed. */
  compressAfterMs: number;
}

/** Cleans and compresses the queue file on a schedule, a short transaction at a time. */
export class MaintenanceSchedule {
  private readonly stopping = new AbortController();
  private loop: Promise<void> | null = null;

  constructor(private readonly options: MaintenanceOptions) {}

  start(): void {
    this.loop ??= this.run();
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.loop;
  }

  private async run(): Promise<void> {
    const { signal } = this.stopping;
    const { queue, logger, intervalMs, retentionMs, compressAfterMs } = this.options;
    while (!signal.aborted) {
      try {
        const removed = await this.repeat(() => queue.maintenance.removeExpired(retentionMs));
        const compressed = await this.repeat(() => queue.maintenance.compress(compressAfterMs));
        if (removed + compressed > 0) {
          queue.maintenance.shrink();
          logger.info({ removed, compressed }, 'event queue cleaned');
        }
      } catch (error) {
        logger.error({ ...describeFailure(error) }, 'the event queue could not be cleaned');
      }
      await sleep(intervalMs, signal);
    }
  }

  private async repeat(step: () => number): Promise<number> {
    let total = 0;
    while (!this.stopping.signal.aborted) {
      const some = step();
      if (some === 0) break;
      total += some;
      await nextTurn();
    }
    return total;
  }
}
