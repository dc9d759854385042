import type { mongo } from 'mongoose';
import { type Connection, type Model, Schema } from 'mongoose';
import { isDuplicateKey } from '../../platform/database/faults';
import { ensureIndexes } from '../../platform/database/indexes';
import { nativeCollection } from '../../platform/database/native-collection';
import { commitmentOf, type CommitmentOpening, newCommitmentOpening } from './commit-reveal';

interface StoredCommitment {
  contractId: string;
  raffleId: number;
  /** 64 hex digits. Whoever reads it before the reveal knows the seed: guard the database as the oracle's key. */
  secret: string;
  /** 32 hex digits. */
  nonce: string;
  createdAt: Date;
}

export interface Commitment extends CommitmentOpening {
  /** 64 hex digits. */
  commitment: string;
}

const commitmentIndex = 'commitment_raffle';

const commitmentSchema = new Schema<StoredCommitment>(
  {
    contractId: { type: String, required: true },
    raffleId: { type: Number, required: true },
    secret: { type: String, required: true },
    nonce: { type: String, required: true },
    createdAt: { type: Date, required: true },
  },
  { collection: 'randomnessCommitments', autoIndex: false, versionKey: false },
);
commitmentSchema.index({ contractId: 1, raffleId: 1 }, { name: commitmentIndex, unique: true });

/** One opening for one raffle, for good: stored before its commitment is sent, so that no crash can lose what was committed to. */
export class Commitments {
  readonly #model: Model<StoredCommitment>;

  constructor(connection: Connection) {
    this.#model = connection.model<StoredCommitment>('RandomnessCommitment', commitmentSchema);
  }

  ensureIndexes(): Promise<void> {
    return ensureIndexes(this.#model);
  }

  async find(contractId: string, raffleId: number): Promise<Commitment | null> {
    const stored = await this.#collection.findOne({ contractId, raffleId }, { hint: commitmentIndex });
    if (stored === null) return null;
    const opening = { secret: Buffer.from(stored.secret, 'hex'), nonce: Buffer.from(stored.nonce, 'hex') };
    return { ...opening, commitment: commitmentOf(opening).toString('hex') };
  }

  /** The raffle's opening, made now where there is none. Of two makers at once, both get the same. */
  async ensure(contractId: string, raffleId: number, now: Date): Promise<Commitment> {
    const { secret, nonce } = newCommitmentOpening();
    try {
      await this.#collection.insertOne({
        contractId,
        raffleId,
        secret: secret.toString('hex'),
        nonce: nonce.toString('hex'),
        createdAt: now,
      });
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
    }
    return (await this.find(contractId, raffleId)) as Commitment;
  }

  get #collection(): mongo.Collection<StoredCommitment> {
    return nativeCollection<StoredCommitment>(this.#model);
  }
}
