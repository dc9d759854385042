import { defineLifecycle } from '../../lifecycle/lifecycle';

/**
 * queued → generating → submitting → confirming → confirmed
 *    ↓         ↓            ↓            ↓
 *  failed   failed/retrying (each of the three) → retrying → generating | dead-lettered
 *
 * Two endings look as if they needed a shortcut and have none:
 * - The raffle turns out to be over (finalised by someone else, or cancelled). From `queued` the table allows `failed`
 *   and that is what happens; from `retrying` the job passes through `generating` first. No transaction is sent.
 * - The raffle turns out to hold our own seed (a delivery whose confirmation was lost). The job walks generating,
 *   submitting and confirming to `confirmed` without redoing them: their products are on chain.
 */
export const jobStates = [
  'queued',
  'generating',
  'submitting',
  'confirming',
  'confirmed',
  'retrying',
  'failed',
  'dead-lettered',
] as const;
export type JobState = (typeof jobStates)[number];

export const randomnessLifecycle = defineLifecycle<JobState>('randomness job', {
  queued: { to: ['generating', 'failed'] },
  generating: { to: ['submitting', 'retrying', 'failed'], active: true },
  submitting: { to: ['confirming', 'retrying', 'failed'], active: true },
  confirming: { to: ['confirmed', 'retrying', 'failed'], active: true },
  confirmed: { to: [] },
  retrying: { to: ['generating', 'dead-lettered'] },
  failed: { to: [] },
  'dead-lettered': { to: [] },
});

export const isJobState = (text: string): text is JobState => (jobStates as readonly string[]).includes(text);

export interface StateTransition {
  fromState: JobState;
  toState: JobState;
  /** The worker's clock. */
  timestamp: Date;
  reason?: string;
  attemptNumber?: number;
}

export interface TransitionStep {
  toState: JobState;
  reason?: string;
  /** Becomes the job's `lastError`. */
  error?: string;
}

/** The part of a job that is its state record. */
export interface StateRecord {
  currentState: JobState;
  transitions: StateTransition[];
  lastError: string | null;
}

export type StepsResult =
  | { kind: 'moved'; record: StateRecord; added: StateTransition[] }
  /** Already there: nothing to write. */
  | { kind: 'already' }
  | { kind: 'illegal'; fromState: JobState; toState: JobState };

/** A job that retries for days must not outgrow its document; the newest entries are the ones asked for. */
export const MAX_TRANSITIONS = 50;

/** Takes `steps` one after the other, all or none. A step to the state it is in is a no-op. */
export function takeSteps(
  current: StateRecord,
  steps: readonly TransitionStep[],
  at: Date,
  attemptNumber: number,
): StepsResult {
  let state = current.currentState;
  let lastError = current.lastError;
  const added: StateTransition[] = [];
  for (const step of steps) {
    const check = randomnessLifecycle.check(state, step.toState);
    if (check.kind === 'already') continue;
    if (check.kind === 'illegal') return { kind: 'illegal', fromState: state, toState: step.toState };
    added.push({
      fromState: state,
      toState: step.toState,
      timestamp: at,
      ...(step.reason === undefined ? {} : { reason: step.reason }),
      attemptNumber,
    });
    state = step.toState;
    lastError = step.error ?? lastError;
  }
  if (added.length === 0) return { kind: 'already' };
  const transitions = [...current.transitions, ...added].slice(-MAX_TRANSITIONS);
  return { kind: 'moved', record: { currentState: state, transitions, lastError }, added };
}

/** `retrying → failed` is not in the table; from there a job passes through `generating`. */
export function stepsToFailed(from: JobState, error: string, reason = error): TransitionStep[] {
  const failed: TransitionStep = { toState: 'failed', reason, error };
  return from === 'retrying' ? [{ toState: 'generating', reason: 'Next attempt' }, failed] : [failed];
}

/** From each state, what a job that is delivered still has to pass on its way to `confirmed`. */
const wayToConfirmed: Readonly<Partial<Record<JobState, readonly JobState[]>>> = {
  queued: ['generating', 'submitting', 'confirming', 'confirmed'],
  retrying: ['generating', 'submitting', 'confirming', 'confirmed'],
  generating: ['submitting', 'confirming', 'confirmed'],
  submitting: ['confirming', 'confirmed'],
  confirming: ['confirmed'],
};

/** @param txHash of the delivery; null where only its effect is known. */
export function stepsToConfirmed(from: JobState, txHash: string | null): TransitionStep[] {
  const reason = txHash === null ? 'Our randomness is on chain' : 'Transaction status = SUCCESS';
  return (wayToConfirmed[from] ?? []).map((toState) => ({ toState, reason }));
}

export const spentStep = (maxAttempts: number): TransitionStep => ({
  toState: 'dead-lettered',
  reason: `Exhausted all ${maxAttempts} attempts`,
});

/** The record of a job that has just come in. */
export const firstRecord = (at: Date): StateRecord => ({
  currentState: 'queued',
  transitions: [{ fromState: 'queued', toState: 'queued', timestamp: at, reason: 'Job received' }],
  lastError: null,
});

/**
 * The record of a job replayed out of its terminal state. No transition leaves a terminal state: a replay begins a new
 * life, and the history of the old one stays above it.
 */
export const replayedRecord = (old: StateRecord, at: Date, reason: string): StateRecord => ({
  currentState: 'queued',
  transitions: [
    ...old.transitions,
    { fromState: 'queued' as const, toState: 'queued' as const, timestamp: at, reason },
  ].slice(-MAX_TRANSITIONS),
  lastError: old.lastError,
});
