const MIN_EVENTS = 10;

/** How much to ask a server for: less after it gave up, slowly more again while it serves. */
export class PageSize {
  events: number;
  contracts: number;

  constructor(
    private readonly maxEvents: number,
    private readonly maxContracts: number,
  ) {
    this.events = maxEvents;
    this.contracts = maxContracts;
  }

  served(): void {
    this.events = Math.min(this.maxEvents, Math.ceil(this.events * 1.25));
    if (this.events === this.maxEvents) this.contracts = Math.min(this.maxContracts, this.contracts + 1);
  }

  /**
   * Asks for half the events at once; when that is too little to halve, for fewer contracts from the next round on.
   * False when the running request can't be made any lighter.
   */
  reduce(): boolean {
    if (this.events > MIN_EVENTS) {
      this.events = Math.max(MIN_EVENTS, Math.floor(this.events / 2));
      return true;
    }
    this.contracts = Math.max(1, Math.floor(this.contracts / 2));
    return false;
  }
}
