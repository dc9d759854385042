import { TransientError, type Failure } from '../../platform/errors';
import type { RefusalWitnesses, SubmissionOutcome } from '../../stellar/submission';
import type { JobOutcome } from '../../worker/job-handler';
import { keyRefusedCodes, meaningOfRefusal, type RaffleContract } from '../contracts/raffle-contract';
import { explained } from '../contracts/refusal-names';
import { type DeliveryRequests, madeBy } from './delivery-requests';
import { classifyFailure } from './failure-classification';
import type { Endings } from './job-endings';
import type { HeldJob } from '../jobs/job-state-manager';
import type { RaffleCheck } from './raffle-check';
import type { RandomnessGenerator } from '../seeds/randomness-generator';
import type { RandomnessJob } from '../jobs/randomness-job.model';

export interface DeliveryOutcomesDeps {
  contract: RaffleContract;
  generator: RandomnessGenerator;
  requests: DeliveryRequests;
  witnesses: RefusalWitnesses;
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
    const { code, hash, contractCode } = outcome;
    const refused = hash === undefined ? outcome.message : `transaction ${hash}: ${outcome.message}`;
    const message = explained(refused, contractCode);
    const decided = { txHash: null };
    switch (meaningOfRefusal(contractCode)) {
      case 'over': {
        const ending = await check.endingOf(held, await contract.view(held.job, signal), signal);
        // The node that was asked for the raffle may be behind the one that refused.
        return ending ?? endings.failedTry(held, retriable(code, message), decided);
      }
      case 'too_early':
        return endings.setAside(held, message, TOO_EARLY_RECHECK_MS, decided);
      case 'permanent':
        return (
          (await this.#underTheNewKey(held, outcome, signal)) ??
          endings.failedTry(held, { code, message, kind: 'rejected', retryable: false }, decided)
        );
    }
  }

  /**
   * A contract that was told of a rotation takes the old key's proof no more. The seed may then still change to the new
   * key's, but only where nobody had a choice in it: no transaction was ever signed with the old one, and every node says
   * that the contract refuses it; one that lied alone could have the seed drawn again. A commitment binds us to its
   * opening, whatever the key.
   */
  async #underTheNewKey(held: HeldJob, outcome: Rejection, signal: AbortSignal): Promise<Ending | null> {
    const { endings, generator, requests, witnesses } = this.#deps;
    const { method, oracleKey } = madeBy(held.job);
    const current = generator.publicKey().address;
    if (method === 'COMMIT_REVEAL' || oracleKey === current || held.job.seedSigned) return null;
    if (!keyRefusedCodes.some((code) => code === outcome.contractCode)) return null;
    const { call, minLedger } = await requests.of(held.job, held.lease.epoch, signal);
    const verdicts = await witnesses.refusalsOf(call, signal, minLedger);
    if (!verdicts.every((code) => code === outcome.contractCode)) {
      return endings.failedTry(
        held,
        retriable('ORACLE_KEY_IN_DOUBT', `${outcome.message}, by some nodes only`),
      );
    }
    const failure = retriable(
      'ORACLE_KEY_REFUSED',
      `${outcome.message}: made with a key before the last rotation`,
    );
    return endings.failedTry(held, failure, { txHash: null, randomness: null, oracleKey: current });
  }
}

const retriable = (code: string, message: string): Failure =>
  classifyFailure(new TransientError(code, message));
