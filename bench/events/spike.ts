import { setTimeout as wait } from 'node:timers/promises';
import { defineEventHandler } from '../../src/ingestion/event-handler';
import { EventPropagator } from '../../src/ingestion/event-propagator';
import { decodeContractValue } from '../../src/stellar/scval-codec';
import { CONTRACT, EndlessChain } from './chain';

/** argv: queue file, number of events. Takes them in beside a handler that can't keep up, and tells the peak RSS in MiB. */
async function main(): Promise<void> {
  const [queuePath, count] = process.argv.slice(2) as [string, string];
  const handler = defineEventHandler({
    name: 'slow',
    topics: ['*'],
    concurrency: 8,
    priority: 'normal',
    handle: async () => {
      await wait(5);
      return undefined;
    },
  });
  const propagator = new EventPropagator({
    source: new EndlessChain(Number(count)),
    decode: decodeContractValue,
    contractIds: [CONTRACT],
    startLedger: 1_000,
    handlers: [handler],
    queuePath,
    tuning: { maxPending: Number(count) * 2 },
  });
  // What compiling this script on the fly left behind is no part of the service.
  global.gc?.();
  let peak = 0;
  const sample = setInterval(() => (peak = Math.max(peak, process.memoryUsage().rss)), 5);
  propagator.start();
  while (propagator.getQueueStats().total < Number(count)) await wait(20);
  // The handler goes on for a while with the whole spike behind it.
  await wait(2_000);
  clearInterval(sample);
  process.send?.(peak / 1024 ** 2);
  await propagator.stop();
  process.disconnect();
}

void main();
