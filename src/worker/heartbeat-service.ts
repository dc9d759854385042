import { sleep } from '../platform/clock';
import type { WorkerId } from '../platform/ids';
import type { Logger } from '../platform/logger';
import type { Tally } from './tally';
import type { LaneReport } from './worker-heartbeat.model';
import type { WorkerEvents, WorkerStatus } from './worker-events';
import type { WorkerHeartbeatRepository } from './worker-heartbeats';

export interface HeartbeatServiceOptions {
  workerId: WorkerId;
  heartbeats: WorkerHeartbeatRepository;
  intervalMs: number;
  tally: Tally;
  lanes: () => LaneReport[];
  events: WorkerEvents;
  logger: Logger;
}

/** How long a stopping process waits for its last heartbeat. */
const FINAL_WRITE_MS = 3000;

/** Tells the database that this worker is there: at the start, at intervals, when asked, and at the end. Never fails. */
export class HeartbeatService {
  #status: WorkerStatus = 'running';
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;
  #askedAgain = false;

  constructor(private readonly options: HeartbeatServiceOptions) {}

  async start(): Promise<void> {
    this.#timer = setInterval(() => void this.beat(), this.options.intervalMs);
    await this.beat();
  }

  /** Writes one now. Asked again while one is on its way, it writes one more after that, however often it was asked. */
  beat(): Promise<void> {
    if (this.#writing !== undefined) {
      this.#askedAgain = true;
      return this.#writing;
    }
    this.#writing = this.#writeUntilQuiet().finally(() => {
      this.#writing = undefined;
    });
    return this.#writing;
  }

  draining(): Promise<void> {
    this.#status = 'draining';
    return this.beat();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#status = 'stopped';
    const giveUp = new AbortController();
    await Promise.race([this.beat(), sleep(FINAL_WRITE_MS, giveUp.signal)]);
    giveUp.abort();
  }

  async #writeUntilQuiet(): Promise<void> {
    for (let again = true; again; again = this.#askedAgain) {
      this.#askedAgain = false;
      await this.#write();
    }
  }

  async #write(): Promise<void> {
    const { workerId, heartbeats, tally, lanes, events, logger } = this.options;
    const status = this.#status;
    try {
      await heartbeats.write({
        workerId,
        status,
        lastProcessedLedger: tally.lastProcessedLedger,
        processedCount: tally.processedCount,
        failedCount: tally.failedCount,
        lastProcessingMs: tally.lastProcessingMs,
        pipelines: lanes(),
      });
      events.emit('heartbeat', { status });
    } catch (error) {
      // Health will call us stale, rightly; the work goes on.
      logger.warn({ err: error, status }, 'heartbeat not written');
    }
  }
}
