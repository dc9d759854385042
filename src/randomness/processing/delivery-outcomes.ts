import { TransientError, type Failure } from '../../platform/errors';
import type { SubmissionOutcome } from '../../stellar/submission';
import type { JobOutcome } from '../../worker/job-handler';
import { meaningOfRefusal, type RaffleContract } from '../contracts/raffle-contract';
import { madeBy } from './delivery-requests';
import { classifyFailure } from './failure-classification';
import type { Endings } from './job-endings';
import type { HeldJob } from '../jobs/job-state-manager';
import type { RaffleCheck } from './raffle-check';
import type { RandomnessGenerator } from '../seeds/randomness-generator';
import type { RandomnessJob } from '../jobs/randomness-job.model';

export interface DeliveryOutcomesDeps {
  contract: RaffleContract;
  generator: RandomnessGenerator;
  endings: Endings;
  check: RaffleCheck;
}

type Ending = JobOutcome<RandomnessJob>;
type Rejection = Extract<SubmissionOutcome, { kind: 'rejected' }>;

/** About a ledger: what the contract says changes no faster. */
const TOO_EARLY_RECHECK_MS = 5_000;

/** What became of a delivery, and what that makes of its job. */
export class DeliveryOutcomes {
  readonly #deps: DeliveryOutcomesDeps;

  constructor(deps: DeliveryOutcomesDeps) {
    this.#deps = deps;
  }

  async conclude(held: HeldJob, outcome: SubmissionOutcome, signal: AbortSignal): Promise<Ending> {
    const { endings } = this.#deps;
    const randomness = madeBy(held.job);
    switch (outcome.kind) {
      case 'success':
        return endings.confirmed(held, { randomness, txHash: outcome.hash, ledger: outcome.ledger });
      case 'already_done': {
        const { ours, summary, transactionHash = held.job.txHash, ledger = null } = outcome.evidence;
        return ours
          ? endings.confirmed(held, { randomness, txHash: transactionHash, ledger })
          : endings.over(held, 'DELIVERED_BY_ANOTHER', summary);
      }
      case 'rejected':
        return this.#rejected(held, outcome, signal);
      case 'expired':
        return endings.failedTry(held, retriable('TX_EXPIRED', 'the transaction expired unseen'), {
          txHash: null,
        });
      case 'unknown':
        return endings.failedTry(held, retriable('CONFIRMATION_TIMEOUT', 'Confirmation timeout'), {
          txHash: outcome.hash,
        });
      case 'superseded':
        return { kind: 'lease_lost' };
    }
  }

  async #rejected(held: HeldJob, outcome: Rejection, signal: AbortSignal): Promise<Ending> {
    const { contract, endings, check } = this.#deps;
    const { code, hash } = outcome;
    const message = hash === undefined ? outcome.message : `${outcome.message} (transaction ${hash})`;
    const decided = { txHash: null };
    switch (meaningOfRefusal(outcome.contractCode)) {
      case 'over': {
        const ending = await check.endingOf(held, await contract.view(held.job, signal), signal);
        // The node that was asked for the raffle may be behind the one that refused.
        return ending ?? endings.failedTry(held, retriable(code, message), decided);
      }
      case 'too_early':
        return endings.setAside(held, message, TOO_EARLY_RECHECK_MS, decided);
      case 'permanent':
        return (
          this.#underTheNewKey(held, message) ??
          endings.failedTry(held, { code, message, kind: 'rejected', retryable: false }, decided)
        );
    }
  }

  /**
   * A contract that was told of a rotation takes the old key's proof no more. Nothing of it is on chain, so the seed may
   * still change to the new key's. A commitment binds us to its opening, whatever the key.
   */
  #underTheNewKey(held: HeldJob, message: string): Ending | null {
    const { endings, generator } = this.#deps;
    const { method, oracleKey } = madeBy(held.job);
    const current = generator.publicKey().address;
    if (method === 'COMMIT_REVEAL' || oracleKey === current) return null;
    const failure = retriable('ORACLE_KEY_REFUSED', `${message}: made with a key before the last rotation`);
    return endings.failedTry(held, failure, { txHash: null, randomness: null, oracleKey: current });
  }
}

const retriable = (code: string, message: string): Failure =>
  classifyFailure(new TransientError(code, message));
