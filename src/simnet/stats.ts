import type { RejectionCode } from './transaction-result';

/** What the network saw, for tests and reports. Only real answers count here, not injected ones. */
export class SimnetStats {
  readonly callsByMethod: Record<string, number> = {};
  readonly rejectedByCode: Partial<Record<RejectionCode, number>> = {};
  readonly includedPerLedger: Record<number, number> = {};
  accepted = 0;
  duplicates = 0;
  tryAgainLater = 0;
  /** Dropped from the queue: too old, or no longer valid. */
  dropped = 0;

  countCall(method: string): void {
    this.callsByMethod[method] = (this.callsByMethod[method] ?? 0) + 1;
  }

  countRejection(code: RejectionCode): void {
    this.rejectedByCode[code] = (this.rejectedByCode[code] ?? 0) + 1;
  }

  get badSequences(): number {
    return this.rejectedByCode.txBadSeq ?? 0;
  }
}
