/** What a worker did since its start, for its heartbeat. */
export class Tally {
  processedCount = 0;
  failedCount = 0;
  lastProcessedLedger: number | null = null;
  lastProcessingMs: number | null = null;

  completed(durationMs: number, ledger: number | undefined): void {
    this.processedCount++;
    this.lastProcessingMs = durationMs;
    if (ledger !== undefined) this.lastProcessedLedger = Math.max(ledger, this.lastProcessedLedger ?? 0);
  }

  failed(durationMs: number): void {
    this.failedCount++;
    this.lastProcessingMs = durationMs;
  }
}
