import type { mongo, Types } from 'mongoose';
import { nativeCollection, type BoundModel } from '../platform/database/native-collection';
import type { Logger } from '../platform/logger';
import type { Lifecycle } from './lifecycle';

/** One line of a document's history. */
export interface TimelineEntry {
  /** The state that was entered. */
  stage: string;
  from: string;
  /** Database clock. */
  at: Date;
  actor: string;
  epoch: number;
  reason?: string;
  txHash?: string;
}

/** What a collection has to carry to be driven by a lifecycle. `epoch` starts at 0. */
export interface LifecycleDocument {
  _id: Types.ObjectId | string;
  epoch: number;
  timeline: TimelineEntry[];
  updatedAt: Date;
}

export interface TransitionRequest<Id, State extends string> {
  id: Id;
  /** The state it must be in. Left out: whichever it is in at that moment. */
  from?: State;
  to: State;
  /** The claim's epoch. A document that a later claim has touched refuses it. */
  epoch: number;
  /** Stored in the same write. */
  fields?: Record<string, unknown>;
  /** Who moves it: worker, oracle, user … */
  actor: string;
  reason?: string;
  txHash?: string;
}

export type TransitionResult<State extends string, Stored> =
  | { kind: 'moved'; from: State; document: Stored }
  /** It is in that state already; nothing was written. */
  | { kind: 'already'; document: Stored }
  | { kind: 'illegal'; from: State; to: State }
  | { kind: 'missing_fields'; fields: string[]; code: string }
  /** It is not in the expected state. */
  | { kind: 'conflict'; actual: State; document: Stored }
  /** A later epoch works on it: stop. */
  | { kind: 'superseded'; document: Stored }
  | { kind: 'not_found' };

export type AdoptResult<Stored> =
  { kind: 'adopted'; document: Stored } | { kind: 'superseded' } | { kind: 'not_found' };

export interface LifecycleServiceOptions<State extends string> {
  lifecycle: Lifecycle<State>;
  model: BoundModel;
  logger: Logger;
  /** Entries kept in the timeline, the newest. */
  timelineLimit?: number;
  /** The field that holds the state. */
  stateField?: string;
}

const DEFAULT_TIMELINE_LIMIT = 100;
/** A move without `from` reads first; under contention the state may change in between. */
const MAX_TRIES = 5;

/**
 * Applies a lifecycle to the documents of one collection. A move is one compare-and-set on (id, state, epoch), and writes the
 * timeline along with it: of two writers one wins, and neither leaves a state without its history.
 */
export class LifecycleService<Stored extends LifecycleDocument, State extends string> {
  readonly #lifecycle: Lifecycle<State>;
  readonly #model: BoundModel;
  readonly #logger: Logger;
  readonly #timelineLimit: number;
  readonly #stateField: string;

  constructor(options: LifecycleServiceOptions<State>) {
    this.#lifecycle = options.lifecycle;
    this.#model = options.model;
    this.#logger = options.logger;
    this.#timelineLimit = options.timelineLimit ?? DEFAULT_TIMELINE_LIMIT;
    this.#stateField = options.stateField ?? 'status';
  }

  async transition(
    request: TransitionRequest<Stored['_id'], State>,
  ): Promise<TransitionResult<State, Stored>> {
    let from = request.from;
    for (let tries = 1; ; tries++) {
      // The optimistic first try costs one trip; everything else looks at the document before it decides.
      const known = from ?? (await this.#read(request.id));
      if (known === null) return { kind: 'not_found' };
      if (typeof known === 'object') {
        const refusal = this.#refuse(request, known);
        if (refusal !== null) return refusal;
        from = this.#stateOf(known);
      }
      const source = from as State;
      const check = this.#lifecycle.check(source, request.to);
      if (check.kind === 'illegal') return this.#illegal(request, source);
      if (check.kind === 'allowed') {
        const document = await this.#compareAndSet(request, source);
        if (document !== null) return { kind: 'moved', from: source, document };
      }
      const actual = await this.#read(request.id);
      if (actual === null) return { kind: 'not_found' };
      const refusal = this.#refuse(request, actual);
      if (refusal !== null) return refusal;
      const state = this.#stateOf(actual);
      if ((request.from !== undefined && state !== request.from) || tries === MAX_TRIES) {
        return { kind: 'conflict', actual: state, document: actual };
      }
      from = state;
    }
  }

  /**
   * Raises the document's epoch to a new claim's, so that from now on whoever held it before is refused even where no state
   * changes. For a worker that resumes.
   */
  async adopt(id: Stored['_id'], epoch: number): Promise<AdoptResult<Stored>> {
    const document = await this.#collection.findOneAndUpdate(
      this.#filter(id, { epoch: { $lte: epoch } }),
      [{ $set: { epoch } }],
      { returnDocument: 'after', hint: { _id: 1 } },
    );
    if (document !== null) return { kind: 'adopted', document: document as unknown as Stored };
    return (await this.#read(id)) === null ? { kind: 'not_found' } : { kind: 'superseded' };
  }

  get #collection(): mongo.Collection {
    return nativeCollection(this.#model);
  }

  #filter(id: Stored['_id'], conditions: mongo.Document): mongo.Filter<mongo.Document> {
    return { ...conditions, _id: id as Types.ObjectId };
  }

  async #read(id: Stored['_id']): Promise<Stored | null> {
    return (await this.#collection.findOne(this.#filter(id, {}), {
      hint: '_id_',
    })) as unknown as Stored | null;
  }

  #stateOf(document: Stored): State {
    return (document as mongo.Document)[this.#stateField] as State;
  }

  /** What a look at the document alone decides, or null when the move may be tried. */
  #refuse(
    { to, epoch, fields = {} }: TransitionRequest<Stored['_id'], State>,
    document: Stored,
  ): TransitionResult<State, Stored> | null {
    if (document.epoch > epoch) return { kind: 'superseded', document };
    if (this.#stateOf(document) === to) return { kind: 'already', document };
    const { fields: needed, code } = this.#lifecycle.requirements(to);
    const missing = needed.filter(
      (name) => !isSet(fields[name]) && !isSet((document as mongo.Document)[name]),
    );
    const allowed = this.#lifecycle.check(this.#stateOf(document), to).kind === 'allowed';
    return allowed && missing.length > 0 ? { kind: 'missing_fields', fields: missing, code } : null;
  }

  #illegal(request: TransitionRequest<Stored['_id'], State>, from: State): TransitionResult<State, Stored> {
    const { to, reason, actor } = request;
    this.#logger.warn(
      { lifecycle: this.#lifecycle.name, id: String(request.id), from, to, reason, actor },
      'illegal transition refused',
    );
    return { kind: 'illegal', from, to };
  }

  async #compareAndSet(
    request: TransitionRequest<Stored['_id'], State>,
    from: State,
  ): Promise<Stored | null> {
    const { id, to, epoch, fields = {}, actor, reason, txHash } = request;
    // A required field that this move doesn't bring must be there already, at the moment of the write.
    const kept = this.#lifecycle.requirements(to).fields.filter((name) => !isSet(fields[name]));
    const entry = {
      stage: to,
      from,
      at: '$$NOW',
      actor: literal(actor),
      epoch,
      ...(reason === undefined ? {} : { reason: literal(reason) }),
      ...(txHash === undefined ? {} : { txHash: literal(txHash) }),
    };
    const document = await this.#collection.findOneAndUpdate(
      this.#filter(id, {
        ...Object.fromEntries(kept.map((name) => [name, { $nin: [null, ''] }])),
        [this.#stateField]: from,
        epoch: { $lte: epoch },
      }),
      [
        {
          $set: {
            ...Object.fromEntries(
              Object.entries(fields)
                .filter(([, value]) => value !== undefined)
                .map(([name, value]) => [name, literal(value)]),
            ),
            [this.#stateField]: to,
            epoch,
            updatedAt: '$$NOW',
            timeline: {
              $slice: [{ $concatArrays: [{ $ifNull: ['$timeline', []] }, [entry]] }, -this.#timelineLimit],
            },
          },
        },
      ],
      { returnDocument: 'after', hint: { _id: 1 } },
    );
    return document as unknown as Stored | null;
  }
}

/** In an update pipeline a plain string that starts with `$` would be read as a field. */
const literal = (value: unknown): unknown => ({ $literal: value });

const isSet = (value: unknown): boolean => value !== undefined && value !== null && value !== '';
