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

/** How many slots ordinary jobs may hold together; at least one. Urgent ones may hold all, reserved or not. */
export const ordinaryLimit = ({ max, reservedForUrgent }: SlotLimit): number =>
  Math.max(1, max - reservedForUrgent);

/**
 * The limit of one process. What ordinary jobs may hold is counted over ordinary jobs alone: were urgent ones counted in,
 * an endless stream of them would keep every ordinary job out for good, however old it is.
 */
export class LocalSlots implements ProcessingSlots {
  #held = 0;
  #heldByOrdinary = 0;

  constructor(readonly limit: SlotLimit) {}

  get held(): number {
    return this.#held;
  }

  canAcquire(urgent: boolean): boolean {
    if (this.#held >= this.limit.max) return false;
    return urgent || this.#heldByOrdinary < ordinaryLimit(this.limit);
  }

  acquire(urgent: boolean): Promise<ProcessingSlot | null> {
    if (!this.canAcquire(urgent)) return Promise.resolve(null);
    this.#count(urgent, 1);
    let held = true;
    const release = (): Promise<void> => {
      if (held) this.#count(urgent, -1);
      held = false;
      return Promise.resolve();
    };
    return Promise.resolve({ release });
  }

  #count(urgent: boolean, by: 1 | -1): void {
    this.#held += by;
    if (!urgent) this.#heldByOrdinary += by;
  }
}
