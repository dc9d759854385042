/** A right to generate, submit and confirm one job. */
export interface ProcessingSlot {
  release(): Promise<void>;
}

export interface ProcessingSlots {
  /** Whether {@link acquire} would be worth trying now. */
  canAcquire(urgent: boolean): boolean;
  /** Null when all are taken: the job goes on waiting, at no cost of an attempt. */
  acquire(urgent: boolean): Promise<ProcessingSlot | null>;
  /** How many this process holds. */
  readonly held: number;
}

export interface SlotLimit {
  max: number;
  /** Of `max`, those that only urgent jobs may take, so that many small raffles never delay a large one. */
  reservedForUrgent: number;
}

/** How many slots a job of that kind may find taken at most. At least one is left to ordinary jobs. */
export const slotsOpenTo = (urgent: boolean, { max, reservedForUrgent }: SlotLimit): number =>
  urgent ? max : Math.max(1, max - reservedForUrgent);

/** The limit of one process. */
export class LocalSlots implements ProcessingSlots {
  #held = 0;

  constructor(readonly limit: SlotLimit) {}

  get held(): number {
    return this.#held;
  }

  canAcquire(urgent: boolean): boolean {
    return this.#held < slotsOpenTo(urgent, this.limit);
  }

  acquire(urgent: boolean): Promise<ProcessingSlot | null> {
    if (!this.canAcquire(urgent)) return Promise.resolve(null);
    this.#held += 1;
    let held = true;
    const release = (): Promise<void> => {
      if (held) this.#held -= 1;
      held = false;
      return Promise.resolve();
    };
    return Promise.resolve({ release });
  }
}
