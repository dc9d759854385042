import { CommandError } from './errors';

const CHECK_EVERY = 128;

/** Ends a command that takes longer than its `maxTimeMS`. Commands run to their end on one thread, so they have to look themselves. */
export class Deadline {
  #at: number;
  #calls = 0;

  /** @param maxTimeMs 0 for none */
  constructor(maxTimeMs: number) {
    this.#at = maxTimeMs > 0 ? performance.now() + maxTimeMs : Infinity;
  }

  /** The command is done. What is left of its result is for later commands, whose time is their own. */
  lift(): void {
    this.#at = Infinity;
  }

  /** @throws CommandError 50 */
  check(): void {
    if (this.#at === Infinity || ++this.#calls % CHECK_EVERY !== 0) return;
    if (performance.now() >= this.#at) throw new CommandError(50, 'operation exceeded time limit');
  }
}
