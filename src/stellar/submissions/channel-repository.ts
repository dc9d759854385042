import type { Connection, mongo } from 'mongoose';
import { isDuplicateKey } from '../../platform/database/faults';
import { nativeCollection } from '../../platform/database/native-collection';
import { channelModel, type ChannelHolder, type StoredChannel } from './channel.model';

/** What is known of an account when it is freed. */
export interface LastUse {
  /** The next user's node has to know this ledger; 0 where any will do. */
  ledger: number;
  /** The number that its transaction used up in that ledger; null when only the network knows. */
  sequence: string | null;
}

const notKept = [{ reservedUntil: null }, { $expr: { $lte: ['$reservedUntil', '$$NOW'] } }];
const unreserved = { reservedBy: null, reservedRank: null, reservedUntil: null };

/** Owns the collection of source accounts. A few documents, always asked for by `_id`. */
export class ChannelRepository {
  private readonly collection: mongo.Collection<StoredChannel>;

  constructor(connection: Connection) {
    this.collection = nativeCollection<StoredChannel>(channelModel(connection));
  }

  /** Adds what is missing; a channel that is there keeps its holder. */
  async register(accounts: readonly string[]): Promise<void> {
    try {
      await this.collection.bulkWrite(
        accounts.map((account) => ({
          updateOne: {
            filter: { _id: account },
            update: {
              $setOnInsert: {
                epoch: 0,
                holder: null,
                heldAt: null,
                freedAt: null,
                reservedBy: null,
                reservedRank: null,
                reservedUntil: null,
                lastLedger: 0,
                sequence: null,
              },
            },
            upsert: true,
          },
        })),
        { ordered: false },
      );
    } catch (error) {
      // Processes that start together insert the same accounts; whoever came second finds them there.
      if (!isDuplicateKey(error)) throw error;
    }
  }

  list(accounts: readonly string[]): Promise<StoredChannel[]> {
    return this.collection.find({ _id: { $in: [...accounts] } }).toArray();
  }

  /** Null when someone else was quicker, or the account is kept for another. */
  lease(account: string, holder: ChannelHolder): Promise<StoredChannel | null> {
    return this.collection.findOneAndUpdate(
      { _id: account, holder: null, $or: [...notKept, { reservedBy: holder.token }] },
      { $set: { holder, ...unreserved }, $inc: { epoch: 1 }, $currentDate: { heldAt: true } },
      { returnDocument: 'after' },
    );
  }

  /** Keeps the next turn of an account, unless it is kept for one of the same or a lower rank. */
  async reserve(account: string, token: string, rank: number, forMs: number): Promise<boolean> {
    const { matchedCount } = await this.collection.updateOne(
      { _id: account, $or: [...notKept, { reservedBy: token }, { reservedRank: { $gt: rank } }] },
      [
        {
          $set: {
            reservedBy: { $literal: token },
            reservedRank: rank,
            reservedUntil: { $add: ['$$NOW', forMs] },
          },
        },
      ],
    );
    return matchedCount === 1;
  }

  async unreserve(accounts: readonly string[], token: string): Promise<void> {
    await this.collection.updateMany(
      { _id: { $in: [...accounts] }, reservedBy: token },
      { $set: unreserved },
    );
  }

  /** Frees the account where `token` still holds it. */
  async release(account: string, token: string, { ledger, sequence }: LastUse): Promise<boolean> {
    const { matchedCount } = await this.collection.updateOne(
      { _id: account, 'holder.token': token },
      {
        $set: { holder: null, heldAt: null, sequence },
        $max: { lastLedger: ledger },
        $currentDate: { freedAt: true },
      },
    );
    return matchedCount === 1;
  }

  /** Forgets the last use of an account that we hold. */
  async forget(account: string, token: string): Promise<void> {
    await this.collection.updateOne(
      { _id: account, 'holder.token': token },
      { $set: { lastLedger: 0, sequence: null } },
    );
  }

  /** Whether the account has been in these hands for longer than `ms`, by the database's clock. */
  async isHeldLongerThan(account: string, token: string, ms: number): Promise<boolean> {
    const found = await this.collection.findOne(
      { _id: account, 'holder.token': token, $expr: { $lt: ['$heldAt', { $subtract: ['$$NOW', ms] }] } },
      { projection: { _id: 1 } },
    );
    return found !== null;
  }
}
