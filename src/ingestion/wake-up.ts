/** A wait that someone else can cut short. A notice given while nobody waits ends the next wait at once. */
export class WakeUp {
  private pending = false;
  private release: (() => void) | null = null;

  notify(): void {
    if (this.release === null) this.pending = true;
    else this.release();
  }

  wait(timeoutMs: number): Promise<void> {
    if (this.pending) {
      this.pending = false;
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.release?.(), timeoutMs);
      this.release = () => {
        clearTimeout(timer);
        this.release = null;
        resolve();
      };
    });
  }
}
