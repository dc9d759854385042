import mongoose, { type Connection, type Model } from 'mongoose';
import type { IntentId } from '../submission';

/** Who holds a source account: the intent, by the token of the attempt that it builds or has built. */
export interface ChannelHolder {
  intent: IntentId;
  token: string;
}

/** A source account. One undecided transaction at a time uses its sequence. */
export interface StoredChannel {
  /** G… */
  _id: string;
  /** Grows by one with every lease. */
  epoch: number;
  holder: ChannelHolder | null;
  /** Database clock; when the holder took it. */
  heldAt: Date | null;
  /** Database clock; when it was freed last. */
  freedAt: Date | null;
  /** The transaction that is to have it next, by its token: no other gets it before `reservedUntil` (database clock). */
  reservedBy: string | null;
  /** What that one was entitled by: a lower rank takes the reservation over. */
  reservedRank: number | null;
  reservedUntil: Date | null;
  /** The ledger in which its last transaction landed: no node behind it knows the account's sequence. */
  lastLedger: number;
  /** The account's number as that transaction left it, decimal; null when only the network knows. */
  sequence: string | null;
}

const channelSchema = new mongoose.Schema<StoredChannel>(
  {
    _id: String,
    epoch: Number,
    holder: mongoose.Schema.Types.Mixed,
    heldAt: Date,
    freedAt: Date,
    reservedBy: String,
    reservedRank: Number,
    reservedUntil: Date,
    lastLedger: Number,
    sequence: String,
  },
  { collection: 'stellarChannels', versionKey: false },
);

export const channelModel = (connection: Connection): Model<StoredChannel> =>
  connection.models['StellarChannel'] ?? connection.model<StoredChannel>('StellarChannel', channelSchema);
