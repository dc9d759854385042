import { type Connection, type Model, type mongo, Types } from 'mongoose';
import { LifecycleService } from '../lifecycle/lifecycle-service';
import { isDuplicateKey } from '../platform/database/faults';
import { ensureIndexes } from '../platform/database/indexes';
import { nativeCollection } from '../platform/database/native-collection';
import { PermanentError } from '../platform/errors';
import type { Logger } from '../platform/logger';
import {
  verificationJobLifecycle,
  type VerificationJobState,
  verificationJobStates,
} from './verification-job.lifecycle';
import { type JobActor, type VerificationJob, verificationJobModel } from './verification-job.model';
import type { StoredVerificationRequest } from './verification-request.model';

/** What a transition may set besides the state. */
export type JobFields = Partial<
  Pick<
    VerificationJob,
    | 'contentHash'
    | 'manifestHash'
    | 'canonicalManifestHash'
    | 'teeAttestationHash'
    | 'teeSignature'
    | 'codeMeasurementHash'
    | 'stellarTransactionHash'
    | 'certificateId'
    | 'errorMessage'
    | 'errorCode'
  >
>;

export type JobMove =
  | { kind: 'moved'; job: VerificationJob }
  /** Someone else had moved it; this is how it stands. */
  | { kind: 'elsewhere'; job: VerificationJob }
  /** A later claim of the request has written to it. */
  | { kind: 'superseded' };

export interface JobMoveRequest {
  /** As it was last seen; the move counts only if it is still in that state. */
  seen: VerificationJob;
  to: VerificationJobState;
  /** Of the claim under which the move is made. */
  epoch: number;
  actor: JobActor;
  fields?: JobFields;
}

/** The one owner of `verificationJobs`. */
export class VerificationJobs {
  readonly #model: Model<VerificationJob>;

  readonly #lifecycle: LifecycleService<VerificationJob, VerificationJobState>;

  constructor(connection: Connection, logger: Logger) {
    this.#model = verificationJobModel(connection);
    this.#lifecycle = new LifecycleService({
      lifecycle: verificationJobLifecycle,
      model: this.#model,
      logger,
    });
  }

  ensureIndexes(): Promise<void> {
    return ensureIndexes(this.#model);
  }

  /**
   * The job of a request as it stands, made first where there is none. Its id and its time follow from the request, so
   * any number of processes may do this at once, and again after a crash.
   */
  async ensure(request: StoredVerificationRequest): Promise<VerificationJob> {
    const _id = request.verificationJobId;
    const found = await this.#collection.findOne({ _id });
    if (found !== null) return found;
    const createdAt = request.replays === 0 ? request.enqueuedAt : request.dueAt;
    const { _id: _ignored, ...fields } = newJob(request, createdAt);
    try {
      const made = await this.#collection.findOneAndUpdate(
        { _id },
        { $setOnInsert: fields },
        { upsert: true, returnDocument: 'after' },
      );
      if (made !== null) return made;
    } catch (error) {
      // Two upserts of one id at once can both miss it; the other one made it.
      if (!isDuplicateKey(error)) throw error;
    }
    const existing = await this.#collection.findOne({ _id });
    if (existing === null) throw gone(_id);
    return existing;
  }

  find(id: string): Promise<VerificationJob | null> {
    return this.#collection.findOne({ _id: new Types.ObjectId(id) });
  }

  /**
   * Compare-and-set on (state, epoch) by the job's table.
   * @throws PermanentError INVALID_STATE_TRANSITION, MISSING_TEE_FIELDS, MISSING_TRANSACTION_HASH, MISSING_ERROR_MESSAGE
   */
  async move({ seen, to, epoch, actor, fields = {} }: JobMoveRequest): Promise<JobMove> {
    const result = await this.#lifecycle.transition({
      id: seen._id,
      from: seen.status,
      to,
      epoch,
      actor,
      fields,
      ...(fields.errorMessage === undefined ? {} : { reason: fields.errorMessage }),
      ...(fields.stellarTransactionHash === undefined ? {} : { txHash: fields.stellarTransactionHash }),
    });
    switch (result.kind) {
      case 'moved':
        return { kind: 'moved', job: result.document };
      case 'already':
      case 'conflict':
        return { kind: 'elsewhere', job: result.document };
      case 'superseded':
        return { kind: 'superseded' };
      case 'illegal':
        throw new PermanentError(
          'INVALID_STATE_TRANSITION',
          `a verification job can't go from ${result.from} to ${result.to}`,
        );
      case 'missing_fields':
        throw new PermanentError(result.code, `${to} needs ${result.fields.join(', ')}`);
      case 'not_found':
        throw gone(seen._id);
    }
  }

  /** Takes the job over for a new claim: from now on every older one is refused. False when a later claim has it. */
  async adopt(_id: Types.ObjectId, epoch: number): Promise<boolean> {
    return (await this.#lifecycle.adopt(_id, epoch)).kind === 'adopted';
  }

  /** Another transaction carries the mint now. */
  async showMint(seen: VerificationJob, epoch: number, transactionHash: string): Promise<JobMove> {
    const { _id } = seen;
    const shown = await this.#collection.findOneAndUpdate(
      { _id, status: 'minting', epoch: { $lte: epoch } },
      [{ $set: { stellarTransactionHash: transactionHash, epoch, updatedAt: '$$NOW' } }],
      { returnDocument: 'after', hint: { _id: 1 } },
    );
    if (shown !== null) return { kind: 'moved', job: shown };
    const actual = await this.#collection.findOne({ _id });
    if (actual === null) throw gone(_id);
    return actual.epoch > epoch ? { kind: 'superseded' } : { kind: 'elsewhere', job: actual };
  }

  /** The jobs of an owner's manifest; as a rule one. */
  ofManifest(manifestHash: string, ownerPublicKey: string): Promise<VerificationJob[]> {
    return this.#collection.find({ manifestHash, ownerPublicKey }, { hint: 'jobs_of_manifest' }).toArray();
  }

  /** Jobs that wait since `minAgeMs` and more by the database's clock, and know what their manifest should hash to. By id. */
  waitingWithManifestHash({
    minAgeMs,
    limit,
    after,
  }: {
    minAgeMs: number;
    limit: number;
    after: string | undefined;
  }): Promise<Pick<VerificationJob, '_id'>[]> {
    return this.#collection
      .find(
        {
          status: { $in: ['pending', 'processing'] },
          ...(after === undefined ? {} : { _id: { $gt: new Types.ObjectId(after) } }),
          canonicalManifestHash: { $ne: null },
          $expr: { $lte: ['$createdAt', { $subtract: ['$$NOW', minAgeMs] }] },
        },
        { projection: { _id: 1 }, sort: { _id: 1 }, limit, hint: 'jobs_by_status' },
      )
      .toArray();
  }

  /** How many jobs are in each state. */
  async countByState(): Promise<Record<VerificationJobState, number>> {
    const counts = await Promise.all(
      verificationJobStates.map(
        async (status) =>
          [status, await this.#collection.countDocuments({ status }, { hint: 'jobs_by_status' })] as const,
      ),
    );
    return Object.fromEntries(counts) as Record<VerificationJobState, number>;
  }

  /** Newest first. `after` is the `next` of the page before. */
  async pageOfOwner(
    ownerPublicKey: string,
    limit: number,
    after: string | undefined,
  ): Promise<{ jobs: VerificationJob[]; next: string | null }> {
    const filter: mongo.Filter<VerificationJob> = { ownerPublicKey };
    if (after !== undefined) {
      const [at, id] = after.split('-') as [string, string];
      const createdAt = new Date(Number(at));
      // Of the two conditions this one bounds the index scan: without it, page n would read the n − 1 before it.
      filter.createdAt = { $lte: createdAt };
      filter.$or = [{ createdAt: { $lt: createdAt } }, { createdAt, _id: { $lt: new Types.ObjectId(id) } }];
    }
    const jobs = await this.#collection
      .find(filter, { sort: { createdAt: -1, _id: -1 }, hint: 'jobs_of_owner', limit: limit + 1 })
      .toArray();
    const page = jobs.slice(0, limit);
    const last = page.at(-1);
    const more = jobs.length > limit && last !== undefined;
    return { jobs: page, next: more ? `${last.createdAt.getTime()}-${last._id.toHexString()}` : null };
  }

  get #collection(): mongo.Collection<VerificationJob> {
    return nativeCollection<VerificationJob>(this.#model);
  }
}

function newJob(request: StoredVerificationRequest, createdAt: Date): VerificationJob {
  return {
    _id: request.verificationJobId,
    requestId: request._id.toHexString(),
    generation: request.replays,
    ownerPublicKey: request.requester,
    contentHash: null,
    manifestHash: null,
    canonicalManifestHash: request.expectedCanonicalManifestHash,
    status: 'pending',
    timeline: [{ stage: 'pending', from: 'pending', at: createdAt, actor: 'user', epoch: 0 }],
    epoch: 0,
    createdAt,
    updatedAt: createdAt,
  };
}
const gone = (id: Types.ObjectId): PermanentError =>
  new PermanentError('JOB_NOT_FOUND', `verification job ${id.toHexString()} is gone`);
