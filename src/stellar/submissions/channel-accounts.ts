import { createHash } from 'node:crypto';
import type { Clock } from '../../platform/clock';
import { SorolaneError } from '../../platform/errors';
import type { Logger } from '../../platform/logger';
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
  clock: Clock;
  logger: Logger;
}

const CHECK_EVERY_MS = 60_000;
/** Below half of what it started with, an account gets that much again. It lives on what it pays in fees. */
const LOW_SHARE = 2n;

/** Creates the derived channel accounts that are not on the network yet, and keeps them in funds. */
export class ChannelAccounts {
  private checkedAtMs: number | null = null;
  private queue: Promise<void> = Promise.resolve();

  constructor(private readonly options: ChannelAccountsOptions) {}

  /**
   * Resolves once all accounts exist; cheap after that.
   * @throws TransientError when the network can't be asked or the creation hasn't landed.
   */
  ensure(signal: AbortSignal): Promise<void> {
    if (!this.isDue()) return Promise.resolve();
    // One at a time, each under its own signal: whoever comes next finds it done, or tries again where the first failed.
    const turn = this.queue.then(() => this.check(signal));
    this.queue = turn.catch(() => undefined);
    return turn;
  }

  private isDue(): boolean {
    if (this.options.accounts.length === 0) return false;
    return this.checkedAtMs === null || this.options.clock.monotonicMs() - this.checkedAtMs >= CHECK_EVERY_MS;
  }

  private async check(signal: AbortSignal): Promise<void> {
    if (!this.isDue()) return;
    if (this.checkedAtMs === null) await this.create(signal);
    // Set before the funding: a shortage of the oracle account must not stop those that still have something.
    this.checkedAtMs = this.options.clock.monotonicMs();
    try {
      await this.topUp(signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof SorolaneError)) throw error;
      this.options.logger.warn({ err: error }, 'channel accounts could not be topped up');
    }
  }

  private async create(signal: AbortSignal): Promise<void> {
    const { maintenance, balanceStroops } = this.options;
    const missing = await this.missing(0, signal);
    if (missing.length === 0) return;
    await maintenance.run(
      {
        intent: intentFor('channels', missing),
        body: { kind: 'create_accounts', accounts: missing, balanceStroops },
        isWanted: async (minLedger) => (await this.missing(minLedger, signal)).length > 0,
      },
      signal,
    );
  }

  private async topUp(signal: AbortSignal): Promise<void> {
    const { maintenance, balanceStroops } = this.options;
    const low = await this.low(0, signal);
    if (low.length === 0) return;
    await maintenance.run(
      {
        intent: intentFor('top-up', low),
        body: { kind: 'pay', accounts: low, amountStroops: balanceStroops },
        isWanted: async (minLedger) => (await this.low(minLedger, signal)).length > 0,
      },
      signal,
    );
  }

  private async missing(minLedger: number, signal: AbortSignal): Promise<string[]> {
    const balances = await this.balances(minLedger, signal);
    return this.options.accounts.filter((account) => !balances.has(account));
  }

  private async low(minLedger: number, signal: AbortSignal): Promise<string[]> {
    const enough = this.options.balanceStroops / LOW_SHARE;
    const balances = await this.balances(minLedger, signal);
    return this.options.accounts.filter((account) => (balances.get(account) ?? enough) < enough);
  }

  private async balances(minLedger: number, signal: AbortSignal): Promise<Map<string, bigint>> {
    const { rpc, accounts } = this.options;
    const { value } = await rpc.ledgerEntries(accounts.map(accountLedgerKey), { signal, minLedger });
    const entries = (value.entries ?? []).map((entry) => readAccountEntry(entry.xdr));
    return new Map(entries.map(({ address, balanceStroops }) => [address, balanceStroops]));
  }
}

/** Named by the accounts it is for, so that processes that find the same share one transaction. */
function intentFor(purpose: string, accounts: readonly string[]): IntentId {
  const names = createHash('sha256').update(accounts.toSorted().join()).digest('hex');
  return `${purpose}:${names}` as IntentId;
}
