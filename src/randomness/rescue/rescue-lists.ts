import type { Clock } from '../../platform/clock';
import type { RaffleContract } from '../contracts/raffle-contract';
import type { StoredRandomnessJob } from '../jobs/randomness-job.model';
import type { RandomnessJobs } from '../jobs/randomness-jobs.repository';
import { type JobState, jobStates, randomnessLifecycle } from '../jobs/randomness-lifecycle';
import type { LookAtRaffle } from './raffle-look';
import { type DrawReport, reportDraw } from './stuck-report';

export interface RescueListsDeps {
  jobs: RandomnessJobs;
  contract: RaffleContract;
  look: LookAtRaffle;
  latestLedger: (signal: AbortSignal) => Promise<number>;
  requestTimeoutLedgers: number;
  clock: Clock;
}

export interface JobList {
  jobs: StoredRandomnessJob[];
  /** Beside those that are listed, there may be more. */
  total: number;
}

const PAGE_SIZE = 500;
const PARALLEL_READS = 8;
const LEDGER_TIMEOUT_MS = 15_000;
const failedStates = ['failed', 'dead-lettered'] as const;

/** Jobs and draws for people to read. */
export class RescueLists {
  constructor(private readonly deps: RescueListsDeps) {}

  failed(limit: number): Promise<JobList> {
    return this.#list(failedStates, limit);
  }

  all(limit: number): Promise<JobList> {
    return this.#list(jobStates, limit);
  }

  /**
   * Every draw that is not known to be over: open jobs, and dead ones, whose raffles may wait all the same. Those that are
   * stuck come first, then the oldest. Asks each one's raffle.
   */
  async draws(): Promise<DrawReport[]> {
    const { latestLedger, clock } = this.deps;
    const currentLedger = await latestLedger(AbortSignal.timeout(LEDGER_TIMEOUT_MS)).catch(() => null);
    const reports: DrawReport[] = [];
    let batch: StoredRandomnessJob[] = [];
    const report = async (): Promise<void> => {
      const nowMs = clock.now();
      reports.push(...(await Promise.all(batch.map((job) => this.#report(job, { nowMs, currentLedger })))));
      batch = [];
    };
    for await (const job of this.#inStates(jobStates.filter((state) => state !== 'confirmed'))) {
      // Ended as done: the raffle needed nothing of it.
      if (job.phase === 'done') continue;
      if (batch.push(job) === PARALLEL_READS) await report();
    }
    await report();
    return reports.sort(
      (a, b) => Number(b.status === 'stuck') - Number(a.status === 'stuck') || b.ageMs - a.ageMs,
    );
  }

  async #report(
    job: StoredRandomnessJob,
    at: { nowMs: number; currentLedger: number | null },
  ): Promise<DrawReport> {
    const look = await this.deps.look(job);
    const { contract, requestTimeoutLedgers } = this.deps;
    const holdsOurs =
      look.kind === 'seen' &&
      job.randomness !== null &&
      look.view.deliveredSeed === contract.seedOnChain(job.randomness);
    return reportDraw(job, { ...at, look, holdsOurs, requestTimeoutLedgers });
  }

  async #list(states: readonly JobState[], limit: number): Promise<JobList> {
    const counts = await this.deps.jobs.countByState();
    const jobs: StoredRandomnessJob[] = [];
    for await (const job of this.#inStates(states)) {
      if (jobs.length === limit) break;
      jobs.push(job);
    }
    const counted = states.reduce((sum, state) => sum + counts[state], 0);
    return { jobs, total: Math.max(counted, jobs.length) };
  }

  async *#inStates(states: readonly JobState[]): AsyncGenerator<StoredRandomnessJob> {
    const seen = new Set<string>();
    for (const state of states) {
      let after: string | undefined;
      for (;;) {
        const { jobs, next } = await this.deps.jobs.pageByState(state, PAGE_SIZE, after);
        for (const job of jobs) {
          // A job that moves on meanwhile would be met in its next state again.
          if (seen.has(job.requestId)) continue;
          if (!randomnessLifecycle.isTerminal(state)) seen.add(job.requestId);
          yield job;
        }
        if (next === null) break;
        after = next;
      }
    }
  }
}
