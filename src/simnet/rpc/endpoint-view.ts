import type { FaultEngine } from '../faults';
import type { AppliedTransaction, LedgerHistory, LedgerRecord } from '../ledger-history';

/** Figures that most answers carry. */
export interface LedgerWindow {
  latestLedger: number;
  latestLedgerCloseTime: string;
  oldestLedger: number;
  oldestLedgerCloseTime: string;
}

/** The chain as one endpoint shows it: how far it has come, how far back it remembers, and whose chain it is. */
export class EndpointView {
  readonly latest: LedgerRecord;
  readonly oldest: LedgerRecord;
  /** Added to every ledger number that a node of another chain tells. */
  readonly ledgerOffset: number;
  /** A node of another chain knows none of our transactions and events. */
  readonly isForeign: boolean;
  readonly retentionLedgers: number;

  constructor(
    private readonly history: LedgerHistory,
    faults: FaultEngine,
    readonly endpoint: number,
    retentionLedgers: number,
  ) {
    const lag = faults.condition('lag', endpoint)?.ledgers ?? 0;
    const foreign = faults.condition('otherHistory', endpoint);
    this.retentionLedgers = faults.condition('retention', endpoint)?.ledgers ?? retentionLedgers;
    this.isForeign = foreign !== undefined;
    this.ledgerOffset = foreign?.ledgerOffset ?? 0;
    const first = history.firstSequence;
    const latest = Math.max(first, history.latest.sequence - lag);
    this.latest = history.at(latest) ?? history.latest;
    this.oldest = history.at(Math.max(first, latest - this.retentionLedgers + 1)) ?? this.latest;
  }

  get latestLedger(): number {
    return this.latest.sequence + this.ledgerOffset;
  }

  get oldestLedger(): number {
    return this.oldest.sequence + this.ledgerOffset;
  }

  window(): LedgerWindow {
    return {
      latestLedger: this.latestLedger,
      latestLedgerCloseTime: String(this.latest.closeTimeSeconds),
      oldestLedger: this.oldestLedger,
      oldestLedgerCloseTime: String(this.oldest.closeTimeSeconds),
    };
  }

  /** A transaction in the ledgers that this endpoint knows. */
  transaction(hash: string): AppliedTransaction | undefined {
    if (this.isForeign) return undefined;
    const applied = this.history.transaction(hash);
    const isInWindow =
      applied && applied.ledger >= this.oldest.sequence && applied.ledger <= this.latest.sequence;
    return isInWindow ? applied : undefined;
  }
}
