import { defineLifecycle } from '../../../src/lifecycle/lifecycle';

type State = 'draft' | 'review' | 'published' | 'withdrawn';

const lifecycle = defineLifecycle<State>('article', {
  draft: { to: ['review', 'withdrawn'] },
  review: { to: ['draft', 'published', 'withdrawn'], active: true },
  published: { to: [], requires: { fields: ['url', 'author'], code: 'MISSING_PUBLICATION' } },
  withdrawn: { to: [], requires: { fields: ['reason'], code: 'MISSING_REASON' } },
});

describe('a lifecycle', () => {
  const allowed: Record<State, State[]> = {
    draft: ['review', 'withdrawn'],
    review: ['draft', 'published', 'withdrawn'],
    published: [],
    withdrawn: [],
  };
  const pairs = lifecycle.states.flatMap((from) => lifecycle.states.map((to) => [from, to] as const));

  it.each(pairs)('judges %s → %s by its table', (from, to) => {
    const expected =
      from === to
        ? { kind: 'already' }
        : allowed[from].includes(to)
          ? { kind: 'allowed' }
          : { kind: 'illegal', from, to };
    expect(lifecycle.check(from, to)).toEqual(expected);
  });

  it('knows its terminal and active states and what entering takes', () => {
    expect(lifecycle.terminalStates).toEqual(['published', 'withdrawn']);
    expect(lifecycle.activeStates).toEqual(['review']);
    expect(lifecycle.isTerminal('draft')).toBe(false);
    expect(lifecycle.isActive('review')).toBe(true);
    expect(lifecycle.requirements('withdrawn')).toEqual({ fields: ['reason'], code: 'MISSING_REASON' });
    expect(lifecycle.requirements('draft').fields).toEqual([]);
  });
});
