import { appendFileSync } from 'node:fs';
import { defineEventHandler } from '../../src/ingestion/event-handler';
import { makeEvents, ScriptedChain } from './ingestion-chain';
import { makePropagator } from './ingestion-propagator';

/**
 * A process to be killed: reads a chain of `count` events in small pages and appends each handled id to one file a handler.
 * argv: queue file, directory-prefix of the effect files, count, id of an event that kills the process (or "none").
 */
const [queuePath, effects, count, deadly] = process.argv.slice(2) as [string, string, string, string];

const events = makeEvents(Number(count), { perLedger: 20 });
const chain = new ScriptedChain(events, 100 + Math.ceil(events.length / 20));

const handler = (name: string, batch: number) =>
  defineEventHandler({
    name,
    topics: ['*'],
    concurrency: 2,
    batch,
    priority: 'normal',
    handle: async (batchOfEvents) => {
      for (const { id } of batchOfEvents) {
        if (id === deadly && name === 'one') process.kill(process.pid, 'SIGKILL');
        appendFileSync(`${effects}-${name}`, `${id}\n`);
      }
      await new Promise((resolve) => setTimeout(resolve, 1));
      return undefined;
    },
  });

const propagator = makePropagator({
  source: chain,
  queuePath,
  handlers: [handler('one', 1), handler('two', 7)],
  tuning: { pageLimit: 13, pollIntervalMs: 5, deliveryLeaseMs: 60_000 },
});
propagator.start();

setInterval(() => {
  const { pending, processing, total } = propagator.getQueueStats();
  process.stdout.write(`${total}\n`);
  if (total === events.length && pending + processing === 0) {
    void propagator.stop().then(() => process.exit(0));
  }
}, 5);
