import { createHash } from 'node:crypto';
import { contractValue, type ContractCall, type ContractValue } from '../../src/stellar/contract-value';
import { NOTHING_PREPARED } from '../../src/stellar/submission';
import { PermanentError } from '../../src/platform/errors';
import type {
  ContractReader,
  FeeEstimate,
  FeeEstimator,
  Prepared,
  Sent,
  SubmissionOutcome,
  SubmissionRequest,
  TransactionHash,
  TransactionSubmitter,
} from '../../src/stellar/submission';

export interface FakeRaffle {
  status: 'OPEN' | 'DRAWING' | 'FINALIZED' | 'CANCELLED';
  prizeXlm: number;
  seed?: Buffer;
}

interface FakeSubmission {
  epoch: number;
  hash: TransactionHash;
  call: ContractCall;
  feeClass: SubmissionRequest['feeClass'];
  outcome: SubmissionOutcome | null;
}

/** What a step does instead of what it would do: throw, answer, or hang until its signal aborts. */
export type Script<Result> = Error | Result | ((signal: AbortSignal) => Promise<Result>);

/**
 * One raffle contract and a submitter that keeps the protocol of submission.ts, in memory. Each step takes the next of its
 * scripts before it does what it should.
 */
export class FakeRaffles implements TransactionSubmitter, ContractReader, FeeEstimator {
  readonly raffles = new Map<number, FakeRaffle>();
  readonly submissions = new Map<string, FakeSubmission>();
  readonly calls: string[] = [];
  readonly scripts: {
    read: Script<ContractValue>[];
    prepare: Script<Prepared | SubmissionOutcome>[];
    send: Script<Sent | SubmissionOutcome>[];
    confirm: Script<SubmissionOutcome>[];
  } = { read: [], prepare: [], send: [], confirm: [] };
  /** Every transaction that was ever built. */
  readonly built: TransactionHash[] = [];
  ledger = 1000;

  drawing(raffleId: number, prizeXlm = 10): void {
    this.raffles.set(raffleId, { status: 'DRAWING', prizeXlm });
  }

  async read(call: ContractCall, signal: AbortSignal): Promise<ContractValue> {
    this.calls.push(call.functionName);
    const scripted = await take(this.scripts.read, signal);
    if (scripted !== null) return scripted;
    const [id] = call.args;
    const raffle = id?.type === 'u32' ? this.raffles.get(id.value) : undefined;
    if (raffle === undefined) throw new Error('no such raffle');
    return contractValue.struct({
      raffle_id: contractValue.u32(1),
      status: contractValue.string(raffle.status),
      prize_amount: contractValue.i128(BigInt(raffle.prizeXlm) * 10_000_000n),
      seed: raffle.seed === undefined ? { type: 'void' } : contractValue.bytes(raffle.seed),
    });
  }

  estimate(): Promise<FeeEstimate> {
    return Promise.resolve({ inclusionStroops: 120n, resourceStroops: 80_000n });
  }

  async prepare(request: SubmissionRequest, signal: AbortSignal): Promise<Prepared | SubmissionOutcome> {
    this.calls.push('prepare');
    const scripted = await take(this.scripts.prepare, signal);
    if (scripted !== null) return scripted;
    const known = this.submissions.get(request.intent);
    if (known !== undefined && known.epoch > request.epoch) return { kind: 'superseded' };
    if (known !== undefined) {
      known.epoch = request.epoch;
      if (known.outcome?.kind !== 'expired') return known.outcome ?? { kind: 'prepared', hash: known.hash };
    }
    const evidence = await request.findEvidence(signal);
    if (evidence !== null) return { kind: 'already_done', evidence };
    const hash = createHash('sha256')
      .update(`${request.intent}:${this.built.length}`)
      .digest('hex') as TransactionHash;
    this.built.push(hash);
    const { intent, epoch, call, feeClass } = request;
    this.submissions.set(intent, { epoch, hash, call, feeClass, outcome: null });
    return { kind: 'prepared', hash };
  }

  async send(request: SubmissionRequest, signal: AbortSignal): Promise<Sent | SubmissionOutcome> {
    this.calls.push('send');
    const scripted = await take(this.scripts.send, signal);
    if (scripted !== null) return scripted;
    const submission = this.submissions.get(request.intent)!;
    return { kind: 'sent', hash: submission.hash };
  }

  async confirm(
    request: SubmissionRequest,
    { signal }: { timeoutMs: number; signal: AbortSignal },
  ): Promise<SubmissionOutcome> {
    this.calls.push('confirm');
    const scripted = await take(this.scripts.confirm, signal);
    if (scripted !== null) return scripted;
    const submission = this.submissions.get(request.intent);
    if (submission === undefined) throw new PermanentError(NOTHING_PREPARED, 'no transaction was prepared');
    submission.outcome ??= this.land(submission);
    return submission.outcome;
  }

  /** What was submitted for that request. */
  submissionOf(requestId: string): FakeSubmission {
    const found = [...this.submissions].find(([intent]) => intent.endsWith(`:${requestId}`));
    if (found === undefined) throw new Error(`nothing was submitted for ${requestId}`);
    return found[1];
  }

  /** Loses what was submitted for that request, as a database restored from before it would. */
  forget(requestId: string): void {
    for (const intent of this.submissions.keys())
      if (intent.endsWith(`:${requestId}`)) this.submissions.delete(intent);
  }

  /** Lets a submission land, as the network would. */
  land({ call, hash }: FakeSubmission): SubmissionOutcome {
    const [id, seed] = call.args;
    const raffle = id?.type === 'u32' ? this.raffles.get(id.value) : undefined;
    if (raffle?.status !== 'DRAWING' || seed?.type !== 'bytes') {
      return { kind: 'rejected', code: 'CONTRACT_REJECTED', message: 'over', contractCode: 61, hash };
    }
    raffle.status = 'FINALIZED';
    raffle.seed = Buffer.from(seed.value);
    this.ledger += 1;
    return {
      kind: 'success',
      hash,
      ledger: this.ledger,
      returnValue: { type: 'void' },
      feeChargedStroops: 100n,
    };
  }
}

async function take<Result>(scripts: Script<Result>[], signal: AbortSignal): Promise<Result | null> {
  const script = scripts.shift();
  if (script === undefined) return null;
  if (script instanceof Error) throw script;
  return typeof script === 'function' ? (script as (signal: AbortSignal) => Promise<Result>)(signal) : script;
}

/** A step that does nothing until it is cut off. */
export const hangUntilAborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    if (signal.aborted) {
      reject(new Error('aborted'));
      return;
    }
    signal.addEventListener('abort', () => reject(new Error('aborted')), { once: true });
  });
