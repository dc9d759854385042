import type { Logger } from '../platform/logger';
import type { WorkerEventMap, WorkerEvents } from './worker-events';

/** Whether the database answered last. One log line when it goes and one when it is back, however many calls fail between. */
export class Connectivity {
  #reachable = true;

  constructor(
    private readonly logger: Logger,
    private readonly events: WorkerEvents,
  ) {}

  get reachable(): boolean {
    return this.#reachable;
  }

  failed(during: WorkerEventMap['outage'][0]['during'], error: unknown): void {
    if (this.#reachable)
      this.logger.error({ err: error, during }, 'the database does not answer; the worker keeps trying');
    this.#reachable = false;
    this.events.emit('outage', { during, error });
  }

  answered(): void {
    if (this.#reachable) return;
    this.#reachable = true;
    this.logger.info('the database answers again');
    this.events.emit('recovered');
  }
}
