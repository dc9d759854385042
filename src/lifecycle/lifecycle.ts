/** One state of a lifecycle. A state that leads nowhere is terminal. */
export interface StateDefinition<State extends string> {
  to: readonly State[];
  /** Counts as work in progress (against a concurrency limit, in the figures). */
  active?: boolean;
  /** Fields that must be set on entering; `code` is the public error code for their absence. */
  requires?: { fields: readonly string[]; code: string };
}

export type LifecycleTable<State extends string> = Readonly<Record<State, StateDefinition<State>>>;

export type TransitionCheck<State extends string> =
  | { kind: 'allowed' }
  /** Same state: accepted, and nothing to do. */
  | { kind: 'already' }
  | { kind: 'illegal'; from: State; to: State };

/** A state machine as a table of data, and the questions one can ask of it. */
export interface Lifecycle<State extends string> {
  readonly name: string;
  readonly states: readonly State[];
  readonly terminalStates: readonly State[];
  readonly activeStates: readonly State[];
  isTerminal(state: State): boolean;
  isActive(state: State): boolean;
  check(from: State, to: State): TransitionCheck<State>;
  /** What entering a state takes; empty for most. */
  requirements(state: State): { fields: readonly string[]; code: string };
}

const nothingRequired = { fields: [], code: '' } as const;

export function defineLifecycle<State extends string>(
  name: string,
  table: LifecycleTable<State>,
): Lifecycle<State> {
  // The table's own type makes its keys exactly the states.
  const states = Object.keys(table) as State[];
  const isTerminal = (state: State): boolean => table[state].to.length === 0;
  const isActive = (state: State): boolean => table[state].active === true;
  return {
    name,
    states,
    terminalStates: states.filter(isTerminal),
    activeStates: states.filter(isActive),
    isTerminal,
    isActive,
    check: (from, to) => {
      if (from === to) return { kind: 'already' };
      return table[from].to.includes(to) ? { kind: 'allowed' } : { kind: 'illegal', from, to };
    },
    requirements: (state) => table[state].requires ?? nothingRequired,
  };
}
