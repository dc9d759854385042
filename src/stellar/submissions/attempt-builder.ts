import type { Clock } from '../../platform/clock';
import { TransientError } from '../../platform/errors';
import type { Logger } from '../../platform/logger';
import type { Metrics } from '../../platform/metrics';
import { resourceFeeOf, signTransaction, type TransactionBody } from '../chain/transaction-codec';
import type { Signer } from '../keys';
import type { SorobanRpc } from '../rpc/soroban-rpc';
import type { FeeClass, IntentId, TransactionHash } from '../submission';
import type { AttemptTracker } from './attempt-tracker';
import { ChannelPool, type LeasedChannel } from './channel-pool';
import type { FeePolicy } from './fee-policy';
import type { SubmissionRepository } from './submission-repository';

export interface AttemptBuilderOptions {
  rpc: SorobanRpc;
  submissions: SubmissionRepository;
  channels: ChannelPool;
  tracker: AttemptTracker;
  fees: FeePolicy;
  /** The account that acts on chain. */
  actor: Signer;
  networkPassphrase: string;
  /** How long a transaction may land after it was built. */
  validityMs: number;
  /** Highest resource fee that a simulation may ask for, in stroops: it is the word of one node, and we pay it. */
  resourceFeeCap: bigint;
  /** How long to wait for a free source account. */
  channelWaitMs: number;
  clock: Clock;
  metrics: Metrics;
  logger: Logger;
}

export interface BuildRequest {
  intent: IntentId;
  epoch: number;
  feeClass: FeeClass;
  body: TransactionBody;
  /** Since when it is wanted, epoch ms. */
  sinceMs: number;
}

export type Built =
  | { kind: 'signed'; hash: TransactionHash }
  /** Another attempt, or a later epoch, came first. Nothing was signed that could be sent. */
  | { kind: 'overtaken' };

/** From the wish to signed bytes in the database, on a source account that is ours until they are decided. */
export class AttemptBuilder {
  constructor(private readonly options: AttemptBuilderOptions) {}

  /**
   * @throws TransientError when no account is free, the network can't be asked or it asks too much for resources; nothing is
   * left behind by that.
   */
  async build(request: BuildRequest, signal: AbortSignal): Promise<Built> {
    const { submissions, channels } = this.options;
    this.assertAffordable(request);
    const token = ChannelPool.makeToken();
    // Announced before the account is leased: whoever finds the account held looks here whether it may be freed.
    if (!(await submissions.beginBuilding(request.intent, request.epoch, token)))
      return { kind: 'overtaken' };
    const holder = { intent: request.intent, token };
    let channel: LeasedChannel | null = null;
    try {
      const { sinceMs, feeClass } = request;
      const wanted = { ...holder, sinceMs, isUrgent: feeClass === 'urgent' };
      channel = await channels.acquire(wanted, this.options.channelWaitMs, signal);
      const hash = await this.signAndCommit(request, token, channel, signal);
      if (hash !== null) return { kind: 'signed', hash };
    } catch (error) {
      await this.withdraw(request.intent, token, channel);
      throw error;
    }
    await this.withdraw(request.intent, token, channel);
    return { kind: 'overtaken' };
  }

  private assertAffordable({ intent, body }: BuildRequest): void {
    const { resourceFeeCap } = this.options;
    const fee = resourceFeeOf(body);
    if (fee <= resourceFeeCap) return;
    throw new TransientError(
      'RESOURCE_FEE_OVER_CAP',
      `${intent} would cost ${fee} stroops in resources, by the node that simulated it; STELLAR_RESOURCE_FEE_CAP_STROOPS is ${resourceFeeCap}`,
    );
  }

  private async signAndCommit(
    { intent, epoch, feeClass, body }: BuildRequest,
    token: string,
    channel: LeasedChannel,
    signal: AbortSignal,
  ): Promise<TransactionHash | null> {
    const { rpc, fees, actor, networkPassphrase, submissions, metrics } = this.options;
    const source = channel.signer;
    const [{ sequence, ledger: sequenceLedger }, bid, nowMs] = await Promise.all([
      this.numberOf(channel, signal),
      fees.bid(feeClass, signal),
      this.networkTimeMs(signal),
    ]);
    const maxTime = Math.ceil((nowMs + this.options.validityMs) / 1000);
    const signed = await signTransaction({
      source,
      sequence,
      actor,
      body,
      inclusionFee: bid,
      maxTime,
      networkPassphrase,
    });
    signal.throwIfAborted();
    const committed = await submissions.commit(intent, epoch, {
      ...signed,
      token,
      sourceAccount: source.publicKey,
      channelEpoch: channel.epoch,
      sequence: (sequence + 1n).toString(),
      maxTime,
      feeBid: bid.toString(),
      resourceFee: resourceFeeOf(body).toString(),
      sequenceLedger,
      signedAtLedger: rpc.pool.floorLedger() ?? sequenceLedger,
    });
    if (committed) metrics.observe('stellar_fee_bid_stroops', Number(bid), { fee_class: feeClass });
    return committed ? signed.hash : null;
  }

  /**
   * The account's number and the ledger it had it in. What the last transaction left behind needs no asking; where someone
   * else has used the account since, the network's refusal ends this attempt, and the next one asks.
   */
  private async numberOf(
    { signer, lastLedger, sequence }: LeasedChannel,
    signal: AbortSignal,
  ): Promise<{ sequence: bigint; ledger: number }> {
    if (sequence !== null) return { sequence, ledger: lastLedger };
    const { publicKey } = signer;
    const ask = { signal, stickyKey: publicKey, minLedger: lastLedger };
    const account = await this.options.tracker.accountOf(publicKey, ask);
    if (account !== null) return account;
    throw new TransientError('STELLAR_ACCOUNT_NOT_FOUND', `${publicKey} is not on the network`);
  }

  /** Not ours, which may be wrong: transactions would be born dead, or never die. */
  private async networkTimeMs(signal: AbortSignal): Promise<number> {
    const { rpc, clock } = this.options;
    if (rpc.pool.chainTimeMs() === null) await rpc.latestLedger({ signal });
    return rpc.pool.chainTimeMs() ?? clock.now();
  }

  /** Best effort: what can't be taken back now is freed by whoever next looks at the account. */
  private async withdraw(intent: IntentId, token: string, channel: LeasedChannel | null): Promise<void> {
    const { submissions, channels, logger } = this.options;
    try {
      await submissions.abandonBuilding(intent, token);
      if (channel !== null) await channels.releaseIfIdle(channel.signer.publicKey, { intent, token });
    } catch (error) {
      logger.warn({ err: error, intent }, 'a source account is left to be reclaimed');
    }
  }
}
