import { type Connection, type Model, Schema } from 'mongoose';
import type { QueueEnvelope } from '../../queue/envelope';
import { applyQueueEnvelope } from '../../queue/envelope-schema';
import type { TransactionHash } from '../../stellar/submission';
import { isHighPriority, type PriorityLevel, queuePriorityOf } from './priority';
import { firstRecord, jobStates, type StateRecord } from './randomness-lifecycle';
import type { MessageVersion } from '../seeds/randomness-message';
import type { RandomnessMethod } from '../seeds/seed-proof';

/** The product of the generating phase. Kept secret until it is on chain. */
export interface StoredRandomness {
  method: RandomnessMethod;
  messageVersion: MessageVersion;
  /** 64 hex digits. */
  seed: string;
  /** 128 hex digits; of a revealed commitment 96, its secret and nonce. */
  proof: string;
  /** G… of the key that made it. */
  oracleKey: string;
}

/** What asked for the job. Only these may name a priority; none of them can ask for a replay. */
export const requestSources = ['event', 'api', 'operator'] as const;
export type RequestSource = (typeof requestSources)[number];

export interface RandomnessJob extends StateRecord {
  /**
   * What people call the job: the contract's own id of the request, or `contract:request` where each raffle is a contract.
   * The queue's `key` (RaffleContract.jobKey) is what makes a request one job.
   */
  requestId: string;
  /** C… of the raffle's contract. */
  contractId: string;
  /** The request's id as its contract counts it; what proofs sign. */
  contractRequestId: string;
  /** Null where each raffle is a contract of its own. */
  raffleId: number | null;
  source: RequestSource;
  /** As told by the requester; the raffle itself is asked before anything depends on it. */
  prizeXlm: number | null;
  priorityLevel: PriorityLevel;
  /** Whether the reserved lanes take it; follows from `priorityLevel`, for their index. */
  urgent: boolean;
  /** Close of the ledger that held the request; of an API request, when it came in. */
  requestedAt: Date;
  requestedAtLedger: number | null;
  /** G… of the oracle key at that time. */
  oracleKey: string;

  /** Attempts that got as far as a processing slot. */
  attemptCount: number;
  updatedAt: Date;

  randomness: StoredRandomness | null;
  /** Whether a transaction with this seed was ever signed: then somebody may have seen it, and it changes no more. */
  seedSigned: boolean;
  /** The delivery that may be on its way; stored before its first byte is sent. A retry only has to confirm it. */
  txHash: TransactionHash | null;
  ledger: number | null;
  confirmedAt: Date | null;
  slaBreached: boolean;
}

export type StoredRandomnessJob = RandomnessJob & QueueEnvelope;

export type RandomnessJobInput = Pick<
  StoredRandomnessJob,
  | 'key'
  | 'requestId'
  | 'contractId'
  | 'contractRequestId'
  | 'raffleId'
  | 'source'
  | 'prizeXlm'
  | 'priorityLevel'
  | 'requestedAt'
  | 'requestedAtLedger'
  | 'oracleKey'
>;

export function newRandomnessJob(input: Omit<RandomnessJobInput, 'key'>, now: Date): RandomnessJob {
  return {
    ...input,
    urgent: isHighPriority(input.priorityLevel),
    ...firstRecord(now),
    attemptCount: 0,
    updatedAt: now,
    randomness: null,
    seedSigned: false,
    txHash: null,
    ledger: null,
    confirmedAt: null,
    slaBreached: false,
  };
}

export const jobQueuePriority = (job: Pick<RandomnessJob, 'priorityLevel'>): number =>
  queuePriorityOf(job.priorityLevel);

/** Names of the indexes beside the queue's own. */
export const jobIndex = {
  state: 'randomness_state',
  request: 'randomness_request',
  raffle: 'randomness_raffle',
  urgent: 'randomness_urgent',
} as const;
/** By key pattern as well, for commands that take no name as a hint. */
export const urgentIndex = { urgent: 1, order: 1, _id: 1 } as const;

const nullable = { type: String, default: null } as const;
const requiredText = { type: String, required: true } as const;
const state = { type: String, enum: jobStates, required: true } as const;

const transitionSchema = new Schema(
  {
    fromState: state,
    toState: state,
    timestamp: { type: Date, required: true },
    reason: String,
    attemptNumber: Number,
  },
  { _id: false },
);

const randomnessSchema = new Schema<StoredRandomness>(
  {
    method: requiredText,
    messageVersion: { type: Number, required: true },
    seed: requiredText,
    proof: requiredText,
    oracleKey: requiredText,
  },
  { _id: false },
);

function makeSchema(doneRetentionMs: number): Schema<StoredRandomnessJob> {
  const schema = applyQueueEnvelope(
    new Schema<StoredRandomnessJob>(
      {
        requestId: requiredText,
        contractId: requiredText,
        contractRequestId: requiredText,
        raffleId: { type: Number, default: null },
        source: { type: String, enum: requestSources, required: true },
        prizeXlm: { type: Number, default: null },
        priorityLevel: { type: Number, required: true },
        urgent: { type: Boolean, required: true },
        requestedAt: { type: Date, required: true },
        requestedAtLedger: { type: Number, default: null },
        oracleKey: requiredText,
        currentState: state,
        transitions: { type: [transitionSchema], required: true },
        lastError: nullable,
        attemptCount: { type: Number, required: true },
        updatedAt: { type: Date, required: true },
        randomness: { type: randomnessSchema, default: null },
        seedSigned: { type: Boolean, required: true },
        txHash: nullable,
        ledger: { type: Number, default: null },
        confirmedAt: { type: Date, default: null },
        slaBreached: { type: Boolean, required: true },
      },
      { collection: 'randomnessJobs', autoIndex: false, versionKey: false },
    ),
    { doneRetentionMs },
  );
  // Lists and counts by state.
  schema.index({ currentState: 1, _id: 1 }, { name: jobIndex.state });
  // The job that people mean by a request id.
  schema.index({ requestId: 1, _id: -1 }, { name: jobIndex.request });
  // The job of a raffle.
  schema.index({ raffleId: 1, _id: -1 }, { name: jobIndex.raffle });
  // Claims of the lanes that are kept free for large raffles: what is ready and urgent, nothing else.
  schema.index(urgentIndex, {
    name: jobIndex.urgent,
    partialFilterExpression: { phase: 'ready', urgent: true },
  });
  return schema;
}

export function randomnessJobModel(
  connection: Connection,
  doneRetentionMs: number,
): Model<StoredRandomnessJob> {
  const name = 'RandomnessJob';
  const existing = connection.models[name] as Model<StoredRandomnessJob> | undefined;
  return existing ?? connection.model<StoredRandomnessJob>(name, makeSchema(doneRetentionMs));
}
