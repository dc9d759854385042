import type { Types } from 'mongoose';
import type { Failure } from '../platform/errors';
import type { JobError, LeaseToken, SettledLease } from './envelope';
import type { Claimant } from './worker-queue';

/**
 * Every change of an envelope as an update pipeline. All times are `$$NOW`, the server's clock. Values that come from
 * outside are wrapped in `$literal`: in a pipeline a plain string that starts with `$` would be read as a field.
 */
type Pipeline = Record<string, unknown>[];
type Fields = Record<string, unknown>;

const MAX_ERRORS = 10;
export const MAX_ERROR_MESSAGE_LENGTH = 1000;

const literal = (value: unknown): unknown => ({ $literal: value });
const inMs = (delayMs: number): unknown => ({ $add: ['$$NOW', delayMs] });
const orderOf = (dueAt: unknown, weightMs: number, priority: unknown): unknown => ({
  $subtract: [{ $toLong: dueAt }, { $multiply: [weightMs, priority] }],
});

function literalFields(fields: object): Fields {
  const defined = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(defined.map(([name, value]) => [name, literal(value)]));
}

const withError = (entry: Record<keyof JobError, unknown>): unknown => ({
  $slice: [{ $concatArrays: ['$errors', [entry]] }, -MAX_ERRORS],
});

const failureEntry = ({ code, message, retryable }: Failure): Record<keyof JobError, unknown> => ({
  code: literal(code),
  message: literal(message.slice(0, MAX_ERROR_MESSAGE_LENGTH)),
  attempt: '$attempts',
  at: '$$NOW',
  retryable,
  workerId: '$lease.workerId',
});

const settled = (token: LeaseToken, as: SettledLease['as']): unknown => literal({ token, as });

export interface NewJob {
  _id: Types.ObjectId;
  key: string;
  payload: object;
  priority: number;
  delayMs: number;
  maxAttempts: number;
  weightMs: number;
  isEpochFromClock: boolean;
}

/** For an upsert by key: fills an absent document and leaves a present one as it is. */
export function enqueuePipeline(job: NewJob): Pipeline {
  const dueAt = inMs(job.delayMs);
  const envelope = {
    _id: literal(job._id),
    key: literal(job.key),
    phase: job.delayMs > 0 ? 'waiting' : 'ready',
    order: orderOf(dueAt, job.weightMs, job.priority),
    priority: job.priority,
    dueAt,
    attempts: 0,
    maxAttempts: job.maxAttempts,
    epoch: job.isEpochFromClock ? { $toLong: '$$NOW' } : 0,
    lease: null,
    settled: null,
    errors: [],
    enqueuedAt: '$$NOW',
    finishedAt: null,
    deadLetterPending: false,
    replays: 0,
  };
  const absent = { $eq: [{ $type: '$phase' }, 'missing'] };
  const whole = { $mergeObjects: [literal(job.payload), envelope] };
  return [{ $replaceWith: { $cond: [absent, whole, '$$ROOT'] } }];
}

export function claimPipeline(token: LeaseToken, { workerId, lane }: Claimant, leaseMs: number): Pipeline {
  const lease = { token: literal(token), workerId: literal(workerId), lane, expiresAt: inMs(leaseMs) };
  return [
    {
      $set: {
        phase: 'leased',
        attempts: { $add: ['$attempts', 1] },
        epoch: { $add: ['$epoch', 1] },
        lease,
      },
    },
  ];
}

export const renewPipeline = (leaseMs: number): Pipeline => [{ $set: { 'lease.expiresAt': inMs(leaseMs) } }];

export const recordPipeline = (patch: object): Pipeline => [{ $set: literalFields(patch) }];

export function completePipeline(token: LeaseToken, patch: object): Pipeline {
  return [
    {
      $set: {
        ...literalFields(patch),
        phase: 'done',
        lease: null,
        settled: settled(token, 'completed'),
        finishedAt: '$$NOW',
      },
    },
  ];
}

export interface Release {
  token: LeaseToken;
  delayMs: number;
  refundAttempt: boolean;
  yieldsPlace: boolean;
  failure: Failure | undefined;
  patch: object;
  weightMs: number;
}

/** A try that counted is ranked anew by its due time; one that was handed back unused keeps its place in the order. */
export function releasePipeline({
  token,
  delayMs,
  refundAttempt,
  yieldsPlace,
  failure,
  patch,
  weightMs,
}: Release): Pipeline {
  const dueAt = inMs(delayMs);
  return [
    {
      $set: {
        ...literalFields(patch),
        phase: delayMs > 0 ? 'waiting' : 'ready',
        dueAt,
        lease: null,
        settled: settled(token, 'released'),
        ...(refundAttempt ? { attempts: { $subtract: ['$attempts', 1] } } : {}),
        ...(refundAttempt && !yieldsPlace ? {} : { order: orderOf(dueAt, weightMs, '$priority') }),
        ...(failure === undefined ? {} : { errors: withError(failureEntry(failure)) }),
      },
    },
  ];
}

export function deadLetterPipeline(token: LeaseToken, failure: Failure, patch: object): Pipeline {
  return [
    {
      $set: {
        ...literalFields(patch),
        phase: 'dead',
        lease: null,
        settled: settled(token, 'dead_lettered'),
        errors: withError(failureEntry(failure)),
        finishedAt: '$$NOW',
        deadLetterPending: true,
      },
    },
  ];
}

/** Of a job whose holder gave it back on its last attempt without saying why. */
export const spentFailure: Failure = {
  code: 'ATTEMPTS_SPENT',
  message: 'handed back on its last attempt',
  kind: 'transient',
  retryable: true,
};

export const WORKER_DIED = 'WORKER_DIED';

/** An expired lease: back to ready while attempts remain (the lost one counts), else dead. */
export function sweepPipeline(): Pipeline {
  const spent = { $gte: ['$attempts', '$maxAttempts'] };
  return [
    {
      $set: {
        phase: { $cond: [spent, 'dead', 'ready'] },
        finishedAt: { $cond: [spent, '$$NOW', null] },
        deadLetterPending: { $cond: [spent, true, '$deadLetterPending'] },
        lease: null,
        errors: withError({
          code: WORKER_DIED,
          message: { $concat: ['worker ', '$lease.workerId', ' let its lease run out'] },
          attempt: '$attempts',
          at: '$$NOW',
          retryable: true,
          workerId: '$lease.workerId',
        }),
      },
    },
  ];
}

export const completeDeadPipeline = (patch: object): Pipeline => [
  { $set: { ...literalFields(patch), phase: 'done', deadLetterPending: false } },
];

/** Due now, and with at least that priority from now on. */
export function hastenPipeline(priority: number, weightMs: number): Pipeline {
  const raised = { $max: ['$priority', priority] };
  const gainMs = { $multiply: [weightMs, { $subtract: [raised, '$priority'] }] };
  return [
    {
      $set: {
        dueAt: { $cond: [{ $eq: ['$phase', 'waiting'] }, '$$NOW', '$dueAt'] },
        order: { $subtract: ['$order', gainMs] },
        priority: raised,
      },
    },
  ];
}

/** Out of the dead letters: attempts anew, and a new epoch so that nothing of the earlier life is accepted any more. */
export function replayPipeline(patch: object, weightMs: number): Pipeline {
  return [
    {
      $set: {
        ...literalFields(patch),
        phase: 'ready',
        order: orderOf('$$NOW', weightMs, '$priority'),
        dueAt: '$$NOW',
        attempts: 0,
        epoch: { $add: ['$epoch', 1] },
        replays: { $add: ['$replays', 1] },
        finishedAt: null,
        settled: null,
        deadLetterPending: true,
      },
    },
  ];
}
