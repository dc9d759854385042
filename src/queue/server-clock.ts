import type { Clock } from '../platform/clock';
import type { BoundModel } from '../platform/database/native-collection';

const REFRESH_MS = 30_000;

/**
 * An estimate of the database server's clock, for bounding index scans only; whether something is due is decided on the
 * server. It runs on the monotonic clock, so that a wall clock that is wrong, or is set while we run, can't move it.
 */
export class ServerClock {
  #reading: { serverMs: number; monotonicMs: number } | undefined;

  constructor(
    private readonly model: BoundModel,
    private readonly clock: Clock,
  ) {}

  /** Epoch milliseconds by the server's clock, within the round trip of the last reading and 30 s of drift. */
  async estimateMs(): Promise<number> {
    const now = this.clock.monotonicMs();
    if (this.#reading === undefined || now - this.#reading.monotonicMs > REFRESH_MS) {
      const { db } = this.model;
      const { localTime } = await db.getClient().db(db.name).command({ hello: 1 });
      this.#reading = { serverMs: (localTime as Date).getTime(), monotonicMs: now };
    }
    return this.#reading.serverMs + (this.clock.monotonicMs() - this.#reading.monotonicMs);
  }
}
