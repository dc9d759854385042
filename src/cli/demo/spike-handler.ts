import { COMPACT_EVENT_TOPIC, readCompactEvent } from '../../ingestion/compact-event';
import { defineEventHandler } from '../../ingestion/event-handler';
import { sleep } from '../../platform/clock';

export const SPIKE_HANDLER = 'demo-spike';

/** Slower than the events come, so that the buffer has something to do. */
const CALL_MS = 5;

/** An event handler in a file of its own, as a user would add one: it is named by EVENT_HANDLER_MODULES. */
export const eventHandlers = [
  defineEventHandler({
    name: SPIKE_HANDLER,
    topics: [COMPACT_EVENT_TOPIC],
    batch: 100,
    concurrency: 1,
    priority: 'low',
    handle: async (events, { signal, logger }) => {
      await sleep(CALL_MS, signal);
      const malformed = events.filter((event) => readCompactEvent(event).kind !== 'compact').length;
      if (malformed > 0) logger.warn({ malformed }, 'events of the spike that could not be read');
      return undefined;
    },
  }),
];
