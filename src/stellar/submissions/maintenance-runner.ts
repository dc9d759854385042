import { sleep, type Clock } from '../../platform/clock';
import { TransientError } from '../../platform/errors';
import type { TransactionBody } from '../chain/transaction-codec';
import type { IntentId } from '../submission';
import type { AttemptBuilder } from './attempt-builder';
import type { AttemptDriver } from './attempt-driver';
import type { SubmissionRepository } from './submission-repository';

export interface MaintenanceRunnerOptions {
  submissions: SubmissionRepository;
  builder: AttemptBuilder;
  driver: AttemptDriver;
  confirmationTimeoutMs: number;
  clock: Clock;
}

/**
 * Nobody owns housekeeping: every process that needs it works on the one intent, under the one epoch. They may overtake
 * each other before something is signed, and drive the same attempt after that.
 */
const SHARED_EPOCH = 0;
const OVERTAKEN_PAUSE_MS = 150;

/** Something that has to be on chain before the work itself can be. */
export interface Chore {
  intent: IntentId;
  body: TransactionBody;
  /** Whether it is still missing, by a node that knows ledger `minLedger`: another process may have seen to it. */
  isWanted: (minLedger: number, signal: AbortSignal) => Promise<boolean>;
}

/** Transactions that serve other transactions: restorations, new channel accounts. Repeated whenever wanted again. */
export class MaintenanceRunner {
  constructor(private readonly options: MaintenanceRunnerOptions) {}

  /** Resolves when it is no longer wanted. @throws TransientError MAINTENANCE_PENDING when it still is, for now; MAINTENANCE_FAILED. */
  async run({ intent, body, isWanted }: Chore, signal: AbortSignal): Promise<void> {
    const { submissions, builder, driver, confirmationTimeoutMs: timeoutMs, clock } = this.options;
    const request = { intent, epoch: SHARED_EPOCH, feeClass: 'standard' } as const;
    const deadlineMs = clock.monotonicMs() + timeoutMs;
    while (clock.monotonicMs() < deadlineMs) {
      const opened = await submissions.open(intent, SHARED_EPOCH);
      if (opened.kind === 'opened' && opened.submission.attempt === null) {
        // Asked after opening: what landed by then shows from that ledger on, and is not done twice.
        const { settled } = opened.submission;
        const knownLedger = settled?.kind === 'success' ? settled.ledger : 0;
        if (!(await isWanted(knownLedger, signal))) return;
        const built = await builder.build({ ...request, body, sinceMs: clock.now() }, signal);
        if (built.kind === 'overtaken') {
          // Uneven pauses, or two that overtake each other would do so for ever.
          await sleep(OVERTAKEN_PAUSE_MS * Math.random(), signal);
          continue;
        }
      }
      const driven = await driver.drive(request, { timeoutMs, signal });
      // Each further try would pay for failing again; whoever needs it comes back after a while.
      if (driven.kind === 'settled' && driven.settled.kind === 'failed') {
        throw new TransientError('MAINTENANCE_FAILED', `${intent} failed on chain: ${driven.settled.code}`);
      }
    }
    throw new TransientError('MAINTENANCE_PENDING', `${intent} has not landed yet`);
  }
}
