import type { Connection, mongo } from 'mongoose';
import { isDuplicateKey } from '../../platform/database/faults';
import { nativeCollection } from '../../platform/database/native-collection';
import type { IntentId } from '../submission';
import {
  OVERDUE_INDEX,
  submissionModel,
  type Settled,
  type StoredAttempt,
  type StoredEnvelope,
  type StoredSubmission,
} from './submission.model';

export type Opened = { kind: 'opened'; submission: StoredSubmission } | { kind: 'superseded' };

export type NewAttempt = Omit<StoredAttempt, 'sends' | 'sentAt' | 'acceptedAtLedger' | 'bumps'>;

const HISTORY_LENGTH = 10;

/** Owns the collection of submissions. Every write repeats in its filter what it takes for granted. */
export class SubmissionRepository {
  private readonly collection: mongo.Collection<StoredSubmission>;

  constructor(connection: Connection) {
    this.collection = nativeCollection<StoredSubmission>(submissionModel(connection));
  }

  /** Raises the intent's epoch to `epoch`, creating it where it is new. */
  async open(intent: IntentId, epoch: number): Promise<Opened> {
    try {
      const submission = await this.collection.findOneAndUpdate(
        { _id: intent, epoch: { $lte: epoch } },
        {
          $set: { epoch },
          $setOnInsert: {
            building: null,
            attempt: null,
            settled: null,
            settledEpoch: null,
            attempts: 0,
            history: [],
            openedAt: new Date(),
          },
          $currentDate: { updatedAt: true },
        },
        { upsert: true, returnDocument: 'after' },
      );
      return submission === null ? { kind: 'superseded' } : { kind: 'opened', submission };
    } catch (error) {
      // It exists, under a later epoch; or another process has just inserted it, with whichever epoch.
      if (!isDuplicateKey(error)) throw error;
      const submission = await this.collection.findOneAndUpdate(
        { _id: intent, epoch: { $lte: epoch } },
        { $set: { epoch }, $currentDate: { updatedAt: true } },
        { returnDocument: 'after' },
      );
      return submission === null ? { kind: 'superseded' } : { kind: 'opened', submission };
    }
  }

  findAll(intents: readonly IntentId[]): Promise<StoredSubmission[]> {
    return this.collection.find({ _id: { $in: [...intents] } }).toArray();
  }

  find(intent: IntentId): Promise<StoredSubmission | null> {
    return this.collection.findOne({ _id: intent });
  }

  /** Announces a signature to come. False when a later epoch or an undecided attempt is in the way. */
  async beginBuilding(intent: IntentId, epoch: number, token: string): Promise<boolean> {
    const { matchedCount } = await this.collection.updateOne(
      { _id: intent, epoch, attempt: null },
      { $set: { building: { token } }, $currentDate: { updatedAt: true } },
    );
    return matchedCount === 1;
  }

  /** Takes the announcement back, so that this token can never commit. True when it stood. */
  async abandonBuilding(intent: IntentId, token: string): Promise<boolean> {
    const { matchedCount } = await this.collection.updateOne(
      { _id: intent, 'building.token': token },
      { $set: { building: null }, $currentDate: { updatedAt: true } },
    );
    return matchedCount === 1;
  }

  /** The point from which the transaction may land. False when the announcement was taken back or overtaken. */
  async commit(intent: IntentId, epoch: number, attempt: NewAttempt): Promise<boolean> {
    const { matchedCount } = await this.collection.updateOne(
      { _id: intent, epoch, attempt: null, 'building.token': attempt.token },
      {
        $set: {
          building: null,
          settled: null,
          settledEpoch: null,
          attempt: { ...attempt, sends: 0, sentAt: null, acceptedAtLedger: null, bumps: [] },
        },
        $inc: { attempts: 1 },
        $currentDate: { updatedAt: true },
      },
    );
    return matchedCount === 1;
  }

  /** Counts a send before it happens. Null when the attempt is decided or a later epoch works on it. */
  noteSend(intent: IntentId, epoch: number, { token }: StoredAttempt): Promise<StoredSubmission | null> {
    return this.countSend({ _id: intent, epoch, 'attempt.token': token }, epoch);
  }

  /** The same for whichever attempt there is, raising the intent's epoch as {@link open} does. Null when there is none. */
  openSend(intent: IntentId, epoch: number): Promise<StoredSubmission | null> {
    return this.countSend({ _id: intent, epoch: { $lte: epoch }, attempt: { $ne: null } }, epoch);
  }

  /** A node has taken the newest envelope into its queue. */
  async noteAccepted(intent: IntentId, { token, bumps }: StoredAttempt, ledger: number): Promise<void> {
    await this.collection.updateOne(
      // A bump that was stored while the answer was on its way is not what the node has taken.
      { _id: intent, 'attempt.token': token, 'attempt.bumps': { $size: bumps.length } },
      { $set: { 'attempt.acceptedAtLedger': ledger } },
    );
  }

  /** Stores a fee bump before it is sent, on condition that it follows the bumps that its maker knew. */
  async addBump(
    intent: IntentId,
    epoch: number,
    { token, bumps }: StoredAttempt,
    bump: StoredEnvelope,
  ): Promise<boolean> {
    const { matchedCount } = await this.collection.updateOne(
      { _id: intent, epoch, 'attempt.token': token, 'attempt.bumps': { $size: bumps.length } },
      {
        $push: { 'attempt.bumps': bump },
        $set: { 'attempt.acceptedAtLedger': null },
        $currentDate: { updatedAt: true },
      },
    );
    return matchedCount === 1;
  }

  /** Ends an attempt. Whoever comes second changes nothing. */
  settle(submission: StoredSubmission, { token }: StoredAttempt, settled: Settled): Promise<boolean> {
    return this.end(submission, { 'attempt.token': token }, settled);
  }

  /**
   * Ends an attempt that a node refused, while that is the only send there was: another one, by a successor of ours or
   * a predecessor that woke up, may have been taken by another node.
   */
  settleUnsent(submission: StoredSubmission, { token }: StoredAttempt, settled: Settled): Promise<boolean> {
    return this.end(submission, { 'attempt.token': token, 'attempt.sends': 1 }, settled);
  }

  /** Attempts whose validity was over at `epochSeconds`, oldest first. */
  overdue(epochSeconds: number, limit: number): Promise<StoredSubmission[]> {
    return this.collection
      .find({ 'attempt.maxTime': { $gt: 0, $lt: epochSeconds } })
      .hint(OVERDUE_INDEX)
      .sort({ 'attempt.maxTime': 1 })
      .limit(limit)
      .toArray();
  }

  private countSend(
    condition: mongo.Filter<StoredSubmission>,
    epoch: number,
  ): Promise<StoredSubmission | null> {
    return this.collection.findOneAndUpdate(
      condition,
      [
        {
          $set: {
            epoch,
            updatedAt: '$$NOW',
            'attempt.sends': { $add: ['$attempt.sends', 1] },
            'attempt.sentAt': { $ifNull: ['$attempt.sentAt', '$$NOW'] },
          },
        },
      ],
      { returnDocument: 'after' },
    );
  }

  private async end(
    { _id, epoch }: StoredSubmission,
    condition: mongo.Filter<StoredSubmission>,
    settled: Settled,
  ): Promise<boolean> {
    const { matchedCount } = await this.collection.updateOne(
      { _id, ...condition },
      {
        $set: { settled, settledEpoch: epoch, attempt: null },
        $push: {
          history: { $each: [{ hash: settled.hash, kind: settled.kind }], $slice: -HISTORY_LENGTH },
        },
        $currentDate: { updatedAt: true },
      },
    );
    return matchedCount === 1;
  }
}
