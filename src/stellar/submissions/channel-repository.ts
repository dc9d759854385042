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

const reservationIsOver = { $expr: { $lte: ['$reservedUntil', '$$NOW'] } };

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

  /** Null when someone else was quicker, or an urgent transaction waits for this account. */
  lease(account: string, holder: ChannelHolder, isUrgent: boolean): Promise<StoredChannel | null> {
    return this.collection.findOneAndUpdate(
      {
        _id: account,
        holder: null,
        ...(isUrgent ? {} : { $or: [{ reservedUntil: null }, reservationIsOver] }),
      },
      {
        $set: { holder, reservedBy: null, reservedUntil: null },
        $inc: { epoch: 1 },
        $currentDate: { heldAt: true },
      },
      { returnDocument: 'after' },
    );
  }

  /** Keeps the next turn of an account for an urgent transaction, unless it is kept for another one. */
  async reserve(account: string, token: string, forMs: number): Promise<void> {
    await this.collection.updateOne(
      { _id: account, $or: [{ reservedUntil: null }, { reservedBy: token }, reservationIsOver] },
      [{ $set: { reservedBy: { $literal: token }, reservedUntil: { $add: ['$$NOW', forMs] } } }],
    );
  }

  async unreserve(accounts: readonly string[], token: string): Promise<void> {
    await this.collection.updateMany(
      { _id: { $in: [...accounts] }, reservedBy: token },
      { $set: { reservedBy: null, reservedUntil: null } },
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
