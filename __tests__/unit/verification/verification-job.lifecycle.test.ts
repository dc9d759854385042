import {
  stageOf,
  verificationJobLifecycle as lifecycle,
  verificationJobStates as states,
} from '../../../src/verification/verification-job.lifecycle';

const allowed: Record<string, string[]> = {
  pending: ['processing', 'failed'],
  processing: ['tee_verifying', 'failed'],
  tee_verifying: ['minting', 'failed'],
  minting: ['completed', 'failed'],
  completed: [],
  failed: [],
};

describe('the table of verification jobs', () => {
  it.each(states.flatMap((from) => states.map((to) => [from, to] as const)))('%s → %s', (from, to) => {
    const expected = from === to ? 'already' : allowed[from]?.includes(to) ? 'allowed' : 'illegal';
    expect(lifecycle.check(from, to).kind).toBe(expected);
  });

  it('ends in completed and failed', () => {
    expect(lifecycle.terminalStates).toEqual(['completed', 'failed']);
    expect(lifecycle.activeStates).toEqual(['processing', 'tee_verifying', 'minting']);
  });

  it('demands what each state shows', () => {
    expect(lifecycle.requirements('tee_verifying')).toEqual({
      fields: ['teeAttestationHash', 'teeSignature', 'codeMeasurementHash'],
      code: 'MISSING_TEE_FIELDS',
    });
    expect(lifecycle.requirements('minting')).toEqual({
      fields: ['stellarTransactionHash'],
      code: 'MISSING_TRANSACTION_HASH',
    });
    expect(lifecycle.requirements('failed').fields).toEqual(['errorMessage']);
    for (const state of ['pending', 'processing', 'completed'] as const) {
      expect(lifecycle.requirements(state).fields).toEqual([]);
    }
  });

  it('only ever leads on', () => {
    for (const from of states) {
      for (const to of allowed[from] ?? []) {
        expect(stageOf(to as (typeof states)[number])).toBeGreaterThan(stageOf(from));
      }
    }
  });
});
