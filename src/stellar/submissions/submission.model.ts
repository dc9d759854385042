import mongoose, { type Connection, type Model } from 'mongoose';
import type { IntentId, TransactionHash } from '../submission';

/** One envelope that may be on its way. */
export interface StoredEnvelope {
  hash: TransactionHash;
  /** Base64. The very bytes that are sent, however often. */
  envelopeXdr: string;
  /** Stroops per operation, decimal. */
  feeBid: string;
}

/** A signed transaction that no ledger has decided on yet, as far as we know. It holds its source account. */
export interface StoredAttempt extends StoredEnvelope {
  /** The claim on the source account under which it was built; unique for good. */
  token: string;
  /** G… of the channel account, and the fencing epoch under which it was leased. */
  sourceAccount: string;
  channelEpoch: number;
  /** Decimal: 64 bits. */
  sequence: string;
  /** Epoch seconds, by the network's clock; in no ledger that closes later. */
  maxTime: number;
  /** Stroops, decimal. */
  resourceFee: string;
  /** No ledger up to this one can hold it. */
  signedAtLedger: number;
  /** The ledger that its number is taken from. A node that has not come so far refuses it, knowing no better. */
  sequenceLedger: number;
  /** Times that any of its envelopes was handed to a node; counted before the call. */
  sends: number;
  /** When that happened first. Database clock. */
  sentAt: Date | null;
  /** The ledger after which a node took the newest of its envelopes into its queue. */
  acceptedAtLedger: number | null;
  /** Fee bumps around it, oldest first. */
  bumps: StoredEnvelope[];
}

/** What the chain says became of an attempt. Facts: whoever finds them out writes the same. */
export type Settled =
  | {
      kind: 'success';
      hash: TransactionHash;
      ledger: number;
      /** Base64 ScVal. */
      returnValueXdr: string;
      /** Stroops, decimal. */
      feeCharged: string;
    }
  | {
      kind: 'failed';
      hash: TransactionHash;
      ledger: number;
      code: string;
      contractCode?: number;
      /** See FailureNature of the result codec. */
      nature: 'contract' | 'stale';
    }
  /** A node refused it before any other had it, for what no later ledger changes. */
  | { kind: 'refused'; hash: TransactionHash; code: string }
  /** Past its validity, and in no ledger. */
  | { kind: 'expired'; hash: TransactionHash }
  /** Its sequence number is used up, but no node remembers by what. It can't land any more; whether it did, only its effect tells. */
  | { kind: 'lost'; hash: TransactionHash };

/** One wanted effect. `attempt` and `building` are never both set. */
export interface StoredSubmission {
  _id: IntentId;
  /** Highest epoch that worked on it; older ones are refused. */
  epoch: number;
  /** Someone is about to sign. Commits only where its token still stands here. */
  building: { token: string } | null;
  attempt: StoredAttempt | null;
  settled: Settled | null;
  /** The epoch under which `settled` was reached. */
  settledEpoch: number | null;
  /** Attempts begun so far, this one included. */
  attempts: number;
  /** How the last ten attempts ended, oldest first. */
  history: { hash: TransactionHash; kind: Settled['kind'] }[];
  /** When it was first wanted, by the clock of whoever did: for fairness between those that wait, no more. */
  openedAt: Date;
  /** Database clock. */
  updatedAt: Date;
}

const COLLECTION = 'stellarSubmissions';

const submissionSchema = new mongoose.Schema<StoredSubmission>(
  {
    _id: String,
    epoch: Number,
    building: mongoose.Schema.Types.Mixed,
    attempt: mongoose.Schema.Types.Mixed,
    settled: mongoose.Schema.Types.Mixed,
    settledEpoch: Number,
    attempts: Number,
    history: [mongoose.Schema.Types.Mixed],
    openedAt: Date,
    updatedAt: Date,
  },
  { collection: COLLECTION, versionKey: false },
);

/** Serves the recovery's search for overdue attempts: only undecided ones are in it. */
export const OVERDUE_INDEX = 'overdue_attempts';
submissionSchema.index(
  { 'attempt.maxTime': 1 },
  { name: OVERDUE_INDEX, partialFilterExpression: { 'attempt.maxTime': { $gt: 0 } } },
);

export const submissionModel = (connection: Connection): Model<StoredSubmission> =>
  connection.models['StellarSubmission'] ??
  connection.model<StoredSubmission>('StellarSubmission', submissionSchema);
