import type { WorkerId } from '../platform/ids';
import type { ClaimResult } from '../queue/worker-queue';
import { Attempt, type AttemptEnvironment } from './attempt';
import type { IdleGate } from './idle-gate';
import type { WorkSourceOptions } from './work-source';

export interface LaneEnvironment extends AttemptEnvironment {
  workerId: WorkerId;
  gate: IdleGate;
  /** Longest pause between two looks while there is nothing to do. */
  pollIntervalMs: number;
  isStopping: () => boolean;
  /** Called after each attempt, and whenever the lane finds nothing. */
  onProgress: (what: 'attempt' | 'idle') => void;
}

/** What a pool sees of a lane, whatever its jobs look like. */
export interface LaneHandle {
  readonly busy: boolean;
  /** Claims and works until the pool stops. Never rejects. */
  run(): Promise<void>;
  /** Aborts the job in hand, which is then handed back. */
  expire(): void;
}

const FIRST_PAUSE_MS = 50;

/**
 * One job at a time. Looks again at once after each job; while there is none the pauses double up to the poll interval, each
 * with jitter so that the lanes of many processes don't ask in step. An outage is waited out the same way.
 */
export class Lane<Payload extends object> implements LaneHandle {
  #attempt: Attempt<Payload> | undefined;

  constructor(
    private readonly source: WorkSourceOptions<Payload>,
    private readonly index: number,
    private readonly environment: LaneEnvironment,
  ) {}

  get busy(): boolean {
    return this.#attempt !== undefined;
  }

  async run(): Promise<void> {
    const { gate, pollIntervalMs, random, isStopping } = this.environment;
    let pauseMs = FIRST_PAUSE_MS;
    while (!isStopping()) {
      if (await this.#next().catch((error: unknown) => this.#survive(error))) {
        pauseMs = FIRST_PAUSE_MS;
        continue;
      }
      const ceilingMs = Math.min(pauseMs, pollIntervalMs);
      const how = await gate.wait(ceilingMs * (0.5 + random() / 2));
      pauseMs = how === 'woken' ? FIRST_PAUSE_MS : ceilingMs * 2;
    }
  }

  expire(): void {
    this.#attempt?.expire();
  }

  /** @returns whether there was a job */
  async #next(): Promise<boolean> {
    const { workerId, gate, events, isStopping, onProgress } = this.environment;
    const claim = await this.#claim({ workerId, lane: this.index });
    if (claim.kind === 'empty') {
      events.emit('idle', { pipeline: this.source.pipeline, lane: this.index });
      onProgress('idle');
      return false;
    }
    gate.wakeOne();
    this.#attempt = new Attempt(this.source, claim.claimed, this.environment);
    try {
      await (isStopping() ? this.#attempt.handBackUnstarted() : this.#attempt.run());
    } finally {
      this.#attempt = undefined;
    }
    onProgress('attempt');
    return true;
  }

  /** Something unforeseen. A job it left behind is swept when its lease runs out, at the cost of an attempt. */
  #survive(error: unknown): boolean {
    this.environment.logger.error(
      { err: error, pipeline: this.source.pipeline },
      'an attempt could not be ended',
    );
    return false;
  }

  async #claim(claimant: { workerId: WorkerId; lane: number }): Promise<ClaimResult<Payload>> {
    const { connectivity } = this.environment;
    try {
      const result = await this.source.queue.claim(claimant);
      connectivity.answered();
      return result;
    } catch (error) {
      connectivity.failed('claim', error);
      return { kind: 'empty' };
    }
  }
}
