import type { Collection, Connection } from 'mongoose';
import type { WorkerId } from '../platform/ids';
import type { ChainTip } from './chain-tip';
import type { RecordedGap } from './event-store';

interface IngestionState {
  _id: string;
  /** `expiresAt` is the database's clock. `epoch` grows with every change of holder and fences the old one. */
  lease: { holder: string | null; epoch: number; expiresAt: Date };
  /** Contract → cursor behind which every event was handled. Only ever moves forward. */
  checkpoints: Record<string, string>;
  /** Contracts that were found at run time. Absent from documents of the first release. */
  followed?: string[];
  gaps: SharedGap[];
  /** The newest ledger that a leader saw, by which a network that began anew is known. Absent from older documents. */
  tip?: { ledger: number; closedAt: Date } | null;
}

export type SharedGap = Omit<RecordedGap, 'id' | 'foundAt'> & { foundAt: Date };

export interface LeadingState {
  kind: 'leading';
  epoch: number;
  checkpoints: ReadonlyMap<string, string>;
  followed: readonly string[];
  tip: ChainTip | null;
}
export type LeaderState = LeadingState | { kind: 'following'; leader: string | null };

/** What a leader shares. */
export interface IngestionProgress {
  /** Contract → cursor behind which every event was handled. */
  marks: ReadonlyMap<string, string>;
  followed: readonly string[];
  /** Contracts whose marks go, because they are no longer followed. */
  dropped: readonly string[];
  /** Those that were not shared yet. */
  gaps: readonly SharedGap[];
  tip: ChainTip | null;
}

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
      followed: state.followed ?? [],
      tip: state.tip ? { ledger: state.tip.ledger, closedAt: state.tip.closedAt.getTime() } : null,
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
    { marks, followed, dropped, gaps, tip }: IngestionProgress,
  ): Promise<boolean> {
    const checkpoints = [...marks].map(([contractId, cursor]) => [`checkpoints.${contractId}`, cursor]);
    const unset = dropped.map((contractId) => [`checkpoints.${contractId}`, '']);
    const result = await this.states.updateOne(
      { _id: this.stream, 'lease.holder': holder, 'lease.epoch': epoch },
      {
        $set: {
          followed: [...followed],
          tip: tip === null ? null : { ledger: tip.ledger, closedAt: new Date(tip.closedAt) },
        },
        ...(checkpoints.length > 0
          ? { $max: Object.fromEntries(checkpoints) as Record<string, string> }
          : {}),
        ...(unset.length > 0 ? { $unset: Object.fromEntries(unset) as Record<string, ''> } : {}),
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
