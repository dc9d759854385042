import { createHash } from 'node:crypto';
import { RejectedError } from '../../src/platform/errors';
import { type ContractCall, type ContractValue, contractValue } from '../../src/stellar/contract-value';
import type {
  ContractReader,
  IntentId,
  Prepared,
  Sent,
  SubmissionOutcome,
  SubmissionRequest,
  TransactionHash,
  TransactionSubmitter,
} from '../../src/stellar/submission';

interface Submission {
  epoch: number;
  hash: TransactionHash;
  call: ContractCall;
  sent: boolean;
  outcome: SubmissionOutcome | null;
}

export interface Certificate {
  id: bigint;
  owner: string;
  manifestHash: string;
  attestationHash: string;
  transactionHash: TransactionHash;
}

export const provenanceId = 'CPROVENANCE';

/**
 * Submitter, reader and ledger in memory, keeping the contract of submission.ts to the letter: one transaction for an
 * intent at a time, stored before it is sent, and a mint that a manifest already has is refused.
 */
export class FakeChain implements TransactionSubmitter, ContractReader {
  readonly certificates = new Map<string, Certificate>();
  readonly submissions = new Map<IntentId, Submission>();
  /** Every transaction that was ever signed. */
  readonly signed: TransactionHash[] = [];
  authorized = { registry: true, oracle: true };
  /** Outcomes that `confirm` gives instead of looking, the next first. */
  scripted: (SubmissionOutcome['kind'] | Error)[] = [];
  #ledger = 1000;

  async prepare(request: SubmissionRequest, signal: AbortSignal): Promise<Prepared | SubmissionOutcome> {
    const existing = this.submissions.get(request.intent);
    if (existing !== undefined && existing.epoch > request.epoch) return { kind: 'superseded' };
    if (existing !== undefined && existing.outcome?.kind !== 'expired') {
      existing.epoch = request.epoch;
      return existing.outcome ?? { kind: 'prepared', hash: existing.hash };
    }
    const evidence = await request.findEvidence(signal);
    if (evidence !== null) return { kind: 'already_done', evidence };
    // Asking took its time: as in the real one, nothing is signed for a holder that was overtaken meanwhile.
    if ((this.submissions.get(request.intent)?.epoch ?? 0) > request.epoch) return { kind: 'superseded' };
    const hash = createHash('sha256')
      .update(`${request.intent}:${this.signed.length}`)
      .digest('hex') as TransactionHash;
    this.signed.push(hash);
    this.submissions.set(request.intent, {
      epoch: request.epoch,
      hash,
      call: request.call,
      sent: false,
      outcome: null,
    });
    return { kind: 'prepared', hash };
  }

  send(request: SubmissionRequest): Promise<Sent | SubmissionOutcome> {
    const submission = this.#submission(request);
    if (submission.epoch > request.epoch) return Promise.resolve({ kind: 'superseded' });
    submission.sent = true;
    return Promise.resolve(submission.outcome ?? { kind: 'sent', hash: submission.hash });
  }

  async confirm(request: SubmissionRequest): Promise<SubmissionOutcome> {
    const submission = this.#submission(request);
    if (submission.epoch > request.epoch) return { kind: 'superseded' };
    const scripted = this.scripted.shift();
    if (scripted instanceof Error) throw scripted;
    if (scripted === 'unknown') return { kind: 'unknown', hash: submission.hash };
    if (scripted === 'expired') submission.outcome = { kind: 'expired', hash: submission.hash };
    submission.outcome ??= await this.#apply(submission, request);
    return submission.outcome;
  }

  read({ functionName, args }: ContractCall): Promise<ContractValue> {
    switch (functionName) {
      case 'is_verified':
        return Promise.resolve(contractValue.bool(this.authorized.registry));
      case 'is_provider':
        return Promise.resolve(contractValue.bool(this.authorized.oracle));
      case 'get_certificate_by_manifest': {
        const found = this.certificates.get(textOf(args[0]));
        return Promise.resolve(found === undefined ? { type: 'void' } : contractValue.u64(found.id));
      }
      case 'get_certificate': {
        const [id] = args;
        const found = [...this.certificates.values()].find(
          (held) => id?.type === 'u64' && held.id === id.value,
        );
        if (found === undefined) throw new RejectedError('CONTRACT_ERROR', 'no such certificate');
        return Promise.resolve(
          contractValue.struct({
            owner: contractValue.address(found.owner),
            manifest_hash: contractValue.string(found.manifestHash),
            attestation_hash: contractValue.string(found.attestationHash),
          }),
        );
      }
      default:
        throw new RejectedError('CONTRACT_ERROR', `no function ${functionName}`);
    }
  }

  /** A mint by anyone, as the contract does it. Null: the manifest has a certificate already. */
  mint(owner: string, manifestHash: string, attestationHash: string, hash: string): Certificate | null {
    if (this.certificates.has(manifestHash)) return null;
    const certificate = {
      id: BigInt(this.certificates.size + 1),
      owner,
      manifestHash,
      attestationHash,
      transactionHash: hash as TransactionHash,
    };
    this.certificates.set(manifestHash, certificate);
    return certificate;
  }

  #submission(request: SubmissionRequest): Submission {
    const submission = this.submissions.get(request.intent);
    if (submission === undefined) throw new Error(`${request.intent} was not prepared`);
    return submission;
  }

  async #apply(submission: Submission, request: SubmissionRequest): Promise<SubmissionOutcome> {
    if (!submission.sent) throw new Error('confirmed what was never sent');
    const [owner, details] = submission.call.args;
    const fields = new Map(
      details?.type === 'map' ? details.value.map(({ key, value }) => [textOf(key), textOf(value)]) : [],
    );
    const minted = this.mint(
      textOf(owner),
      fields.get('manifest_hash') ?? '',
      fields.get('attestation_hash') ?? '',
      submission.hash,
    );
    if (minted !== null) {
      return {
        kind: 'success',
        hash: submission.hash,
        ledger: (this.#ledger += 1),
        returnValue: contractValue.u64(minted.id),
        feeChargedStroops: 100n,
      };
    }
    const evidence = await request.findEvidence(AbortSignal.timeout(1000));
    return evidence === null
      ? { kind: 'rejected', code: 'CONTRACT_ERROR', message: 'refused', contractCode: 3 }
      : { kind: 'already_done', evidence };
  }
}

const textOf = (value: ContractValue | undefined): string =>
  value !== undefined && 'value' in value && typeof value.value === 'string' ? value.value : '';
