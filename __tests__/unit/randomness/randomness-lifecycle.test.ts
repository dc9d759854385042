import {
  firstRecord,
  jobStates,
  MAX_TRANSITIONS,
  randomnessLifecycle,
  replayedRecord,
  takeSteps,
  type JobState,
  type StateRecord,
} from '../../../src/randomness/jobs/randomness-lifecycle';

const at = new Date('2026-01-01T00:00:00Z');
const inState = (currentState: JobState): StateRecord => ({ currentState, transitions: [], lastError: null });

/** The specification's table, written out again so that an edit of the source can't move both. */
const specified: Record<JobState, JobState[]> = {
  queued: ['generating', 'failed'],
  generating: ['submitting', 'retrying', 'failed'],
  submitting: ['confirming', 'retrying', 'failed'],
  confirming: ['confirmed', 'retrying', 'failed'],
  retrying: ['generating', 'dead-lettered'],
  confirmed: [],
  failed: [],
  'dead-lettered': [],
};

describe('the randomness lifecycle', () => {
  const pairs = jobStates.flatMap((from) => jobStates.map((to) => ({ from, to })));

  test.each(pairs)('$from → $to', ({ from, to }) => {
    const result = takeSteps(inState(from), [{ toState: to }], at, 1);
    if (from === to) expect(result).toEqual({ kind: 'already' });
    else if (specified[from].includes(to)) {
      expect(result).toMatchObject({ kind: 'moved', record: { currentState: to } });
    } else expect(result).toEqual({ kind: 'illegal', fromState: from, toState: to });
  });

  it('has three terminal states, and three that hold a slot', () => {
    expect(randomnessLifecycle.terminalStates).toEqual(['confirmed', 'failed', 'dead-lettered']);
    expect(randomnessLifecycle.activeStates).toEqual(['generating', 'submitting', 'confirming']);
    expect(randomnessLifecycle.states).toEqual([...jobStates]);
  });

  it('takes several steps or none', () => {
    const walked = takeSteps(
      inState('submitting'),
      [
        { toState: 'retrying', error: 'no answer' },
        { toState: 'generating', reason: 'Next try' },
      ],
      at,
      2,
    );
    expect(walked).toMatchObject({
      kind: 'moved',
      record: {
        currentState: 'generating',
        lastError: 'no answer',
        transitions: [
          { fromState: 'submitting', toState: 'retrying', attemptNumber: 2, timestamp: at },
          { fromState: 'retrying', toState: 'generating', reason: 'Next try' },
        ],
      },
    });
    expect(
      takeSteps(inState('queued'), [{ toState: 'generating' }, { toState: 'confirmed' }], at, 1),
    ).toEqual({
      kind: 'illegal',
      fromState: 'generating',
      toState: 'confirmed',
    });
  });

  it('starts with an entry from queued to queued', () => {
    expect(firstRecord(at).transitions).toEqual([
      { fromState: 'queued', toState: 'queued', timestamp: at, reason: 'Job received' },
    ]);
  });

  it('keeps a bounded history, the newest entries of it', () => {
    let record = inState('generating');
    for (let attempt = 1; attempt <= 60; attempt++) {
      const result = takeSteps(record, [{ toState: 'retrying' }, { toState: 'generating' }], at, attempt);
      if (result.kind !== 'moved') throw new Error(result.kind);
      record = result.record;
    }
    expect(record.transitions).toHaveLength(MAX_TRANSITIONS);
    expect(record.transitions.at(-1)?.attemptNumber).toBe(60);
  });

  it('begins a new life on replay and keeps the old history', () => {
    const dead: StateRecord = {
      currentState: 'dead-lettered',
      lastError: 'no fee',
      transitions: [{ fromState: 'retrying', toState: 'dead-lettered', timestamp: at }],
    };
    const replayed = replayedRecord(dead, at, 'Replayed by ops: fee raised');
    expect(replayed.currentState).toBe('queued');
    expect(replayed.transitions.map(({ fromState, toState }) => `${fromState} ${toState}`)).toEqual([
      'retrying dead-lettered',
      'queued queued',
    ]);
  });
});
