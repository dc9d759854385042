import { createHash } from 'node:crypto';
import { accountLedgerKey, readAccountEntry } from '../chain/transaction-codec';
import type { SorobanRpc } from '../rpc/soroban-rpc';
import type { IntentId } from '../submission';
import type { MaintenanceRunner } from './maintenance-runner';

export interface ChannelAccountsOptions {
  rpc: SorobanRpc;
  /** Runs on the oracle account's own sequence. */
  maintenance: MaintenanceRunner;
  accounts: readonly string[];
  balanceStroops: bigint;
}

/** Creates the derived channel accounts that are not on the network yet. */
export class ChannelAccounts {
  private isDone = false;
  private queue: Promise<void> = Promise.resolve();

  constructor(private readonly options: ChannelAccountsOptions) {}

  /** Cheap once it has succeeded. @throws TransientError when the network can't be asked or the creation hasn't landed. */
  ensure(signal: AbortSignal): Promise<void> {
    if (this.isDone || this.options.accounts.length === 0) return Promise.resolve();
    // One at a time, each under its own signal: whoever comes next finds it done, or tries again where the first failed.
    const turn = this.queue.then(() => this.create(signal));
    this.queue = turn.catch(() => undefined);
    return turn;
  }

  private async create(signal: AbortSignal): Promise<void> {
    if (this.isDone) return;
    const missing = await this.missing(0, signal);
    if (missing.length > 0) {
      // Named by what it creates, so that processes that start together share one transaction.
      const names = createHash('sha256').update(missing.toSorted().join()).digest('hex');
      await this.options.maintenance.run(
        {
          intent: `channels:${names}` as IntentId,
          body: { kind: 'create_accounts', accounts: missing, balanceStroops: this.options.balanceStroops },
          isWanted: async (minLedger) => (await this.missing(minLedger, signal)).length > 0,
        },
        signal,
      );
    }
    this.isDone = true;
  }

  private async missing(minLedger: number, signal: AbortSignal): Promise<string[]> {
    const { rpc, accounts } = this.options;
    const { value } = await rpc.ledgerEntries(accounts.map(accountLedgerKey), { signal, minLedger });
    const present = new Set((value.entries ?? []).map((entry) => readAccountEntry(entry.xdr).address));
    return accounts.filter((account) => !present.has(account));
  }
}
