import type { Clock } from '../platform/clock';

/** The wall clock of the simulated network: a source that tests can move forward. */
export class LedgerClock {
  private offsetMs = 0;

  constructor(private readonly source: Pick<Clock, 'now'>) {}

  nowSeconds(): number {
    return Math.floor((this.source.now() + this.offsetMs) / 1000);
  }

  advanceMs(ms: number): void {
    this.offsetMs += ms;
  }
}
