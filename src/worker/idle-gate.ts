interface Sleeper {
  wake(): void;
}

/** Where the idle lanes of one pipeline wait for the next look, or for a hint that there is work. */
export class IdleGate {
  readonly #sleepers = new Set<Sleeper>();
  #closed = false;

  /** Resolves after `ms`, or earlier when woken. Once closed it doesn't wait at all. */
  wait(ms: number): Promise<'elapsed' | 'woken'> {
    if (this.#closed) return Promise.resolve('woken');
    return new Promise((resolve) => {
      const leave = (how: 'elapsed' | 'woken'): void => {
        clearTimeout(timer);
        this.#sleepers.delete(sleeper);
        resolve(how);
      };
      const timer = setTimeout(() => leave('elapsed'), ms);
      const sleeper = { wake: () => leave('woken') };
      this.#sleepers.add(sleeper);
    });
  }

  /** A lane that found work wakes one more, which does the same: a burst reaches all lanes, a single job two. */
  wakeOne(): void {
    const [first] = this.#sleepers;
    first?.wake();
  }

  wakeAll(): void {
    for (const sleeper of [...this.#sleepers]) sleeper.wake();
  }

  /** For good. */
  close(): void {
    this.#closed = true;
    this.wakeAll();
  }
}
