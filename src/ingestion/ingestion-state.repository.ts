import type { Collection, Connection } from 'mongoose';
import type { WorkerId } from '../platform/ids';
import type { RecordedGap } from './event-store';

interface IngestionState {
  _id: string;
  /** `expiresAt` is the database's clock. `epoch` grows with every change of holder and fences the old one. */
  lease: { holder: string | null; epoch: number; expiresAt: Date };
  /** Contract → cursor behind which every event was handled. Only ever moves forward. */
  checkpoints: Record<string, string>;
  gaps: SharedGap[];
}

export type SharedGap = Omit<RecordedGap, 'id' | 'foundAt'> & { foundAt: Date };

export type LeaderState =
  | { kind: 'leading'; epoch: number; checkpoints: ReadonlyMap<string, string> }
  | { kind: 'following'; leader: string | null };

const COLLECTION = 'ingestionState';

/** Owns `ingestionState`: who ingests, and how far everything is handled. One document per stream, so a write is atomic. */
export class IngestionStateRepository {
  private readonly states: Collection<IngestionState>;

  constructor(
    connection: Connection,
    private readonly stream = 'contract-events',
  ) {
    this.states = connection.collection<IngestionState>(COLLECTION);
  }

  /** Takes the lead where it is free, keeps it where it is ours. Valid for `ttlMs` of the database's clock. */
  async hold(holder: WorkerId, ttlMs: number): Promise<LeaderState> {
    await this.ensure();
    const state = await this.states.findOneAndUpdate(
      {
        _id: this.stream,
        $or: [{ 'lease.holder': holder }, { $expr: { $lte: ['$lease.expiresAt', '$$NOW'] } }],
      },
      [
        {
          $set: {
            'lease.epoch': {
              $add: ['$lease.epoch', { $cond: [{ $eq: ['$lease.holder', holder] }, 0, 1] }],
            },
            'lease.holder': holder,
            'lease.expiresAt': { $add: ['$$NOW', ttlMs] },
          },
        },
      ],
      { returnDocument: 'after' },
    );
    if (state === null) {
      const other = await this.states.findOne({ _id: this.stream }, { projection: { lease: 1 } });
      return { kind: 'following', leader: other?.lease.holder ?? null };
    }
    return {
      kind: 'leading',
      epoch: state.lease.epoch,
      checkpoints: new Map(Object.entries(state.checkpoints)),
    };
  }

  /** Lets the next one in at once. Does nothing where another leads by now. */
  async release(holder: WorkerId): Promise<void> {
    await this.states.updateOne(
      { _id: this.stream, 'lease.holder': holder },
      { $set: { 'lease.expiresAt': new Date(0) } },
    );
  }

  /** False when `epoch` no longer leads: nothing was written. */
  async checkpoint(
    holder: WorkerId,
    epoch: number,
    marks: ReadonlyMap<string, string>,
    gaps: readonly SharedGap[],
  ): Promise<boolean> {
    const checkpoints = [...marks].map(([contractId, cursor]) => [`checkpoints.${contractId}`, cursor]);
    const result = await this.states.updateOne(
      { _id: this.stream, 'lease.holder': holder, 'lease.epoch': epoch },
      {
        ...(checkpoints.length > 0
          ? { $max: Object.fromEntries(checkpoints) as Record<string, string> }
          : {}),
        ...(gaps.length > 0 ? { $addToSet: { gaps: { $each: [...gaps] } } } : {}),
      },
    );
    return result.matchedCount === 1;
  }

  async read(): Promise<{
    leader: string | null;
    checkpoints: ReadonlyMap<string, string>;
    gaps: SharedGap[];
  }> {
    const state = await this.states.findOne({ _id: this.stream });
    return {
      leader: state?.lease.holder ?? null,
      checkpoints: new Map(Object.entries(state?.checkpoints ?? {})),
      gaps: state?.gaps ?? [],
    };
  }

  private async ensure(): Promise<void> {
    await this.states.updateOne(
      { _id: this.stream },
      {
        $setOnInsert: {
          lease: { holder: null, epoch: 0, expiresAt: new Date(0) },
          checkpoints: {},
          gaps: [],
        },
      },
      { upsert: true },
    );
  }
}
