import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import { defineEventHandler } from '../src/ingestion/event-handler';
import { EventPropagator } from '../src/ingestion/event-propagator';
import { EventQueue } from '../src/ingestion/event-queue';
import { defaultTuning } from '../src/ingestion/ingestion-tuning';
import { decodeContractValue } from '../src/stellar/scval-codec';
import { benchCommand } from './command';
import { CONTRACT, EndlessChain, pageOfEvents } from './events/chain';

const { json: asJson } = benchCommand(
  'events',
  'Figures of event ingestion on one core. Speeds are the best of three runs: whatever else the machine does only ever ' +
    'slows one down.',
)
  .addHelpText(
    'after',
    '\nThe last line of --json: {enqueuePerSecond, endToEndPerSecond, spikeRssMiB, dequeueGrowth}.',
  )
  .parse()
  .opts<{ json: boolean }>();
const directory = mkdtempSync(path.join(tmpdir(), 'sorolane-bench-'));
const say = (line: string): void => console.log(line);

const ENQUEUED = 200_000;
const PAGE = 1_000;
const HANDLED = 40_000;
/** Calls of the no-op handler at one time, one event each: as many as a service has by default. */
const SLOTS = defaultTuning.maxCalls;
const SPIKE = 100_000;
const DEQUEUES = 2_000;
const MANY = 1_000_000;
const FEW = 1_000;

function fill(queue: EventQueue, count: number): number {
  let busyMs = 0;
  for (let from = 0; from < count; from += PAGE) {
    const events = pageOfEvents(from, PAGE);
    const started = performance.now();
    queue.enqueueBatch({ events, contractIds: [CONTRACT], position: { cursor: events.at(-1)!.id } });
    busyMs += performance.now() - started;
  }
  return busyMs;
}

function benchEnqueue(): number {
  const queue = new EventQueue(path.join(directory, 'enqueue.db'));
  const busyMs = fill(queue, ENQUEUED);
  queue.deleteQueue();
  return (ENQUEUED / busyMs) * 1_000;
}

async function benchEndToEnd(run: number): Promise<number> {
  let done: () => void = () => undefined;
  const all = new Promise<void>((resolve) => (done = resolve));
  let handled = 0;
  const handler = defineEventHandler({
    name: 'no-op',
    topics: ['transfer'],
    concurrency: SLOTS,
    priority: 'normal',
    handle: () => {
      if ((handled += 1) === HANDLED) done();
      return Promise.resolve(undefined);
    },
  });
  const propagator = new EventPropagator({
    source: new EndlessChain(HANDLED),
    decode: decodeContractValue,
    contractIds: [CONTRACT],
    startLedger: 1_000,
    handlers: [handler],
    queuePath: path.join(directory, `end-to-end-${run}.db`),
  });
  const started = performance.now();
  propagator.start();
  await all;
  const elapsedMs = performance.now() - started;
  await propagator.stop();
  return (HANDLED / elapsedMs) * 1_000;
}

/** In a process of its own, so that nothing else is weighed with it. */
async function benchSpike(): Promise<number> {
  const child = fork(
    path.join(__dirname, 'events/spike.ts'),
    [path.join(directory, 'spike.db'), String(SPIKE)],
    {
      // Without the loader thread of tsx, which a service doesn't have.
      execArgv: ['--require', 'tsx/cjs', '--expose-gc'],
    },
  );
  const [peakMiB] = (await once(child, 'message')) as [number];
  await once(child, 'exit');
  return peakMiB;
}

/** Median microseconds of one dequeue and its mark, with `rows` waiting. */
function benchDequeue(rows: number): number {
  const queue = new EventQueue(path.join(directory, `dequeue-${rows}.db`));
  fill(queue, rows);
  const to = [{ handler: 'direct', ordered: false, maxAttempts: 3 }];
  for (
    let routed = queue.deliveries.unrouted(PAGE);
    routed.rows.length > 0;
    routed = queue.deliveries.unrouted(PAGE)
  ) {
    const routes = routed.rows.map(({ seq, contract }) => ({ kind: 'deliver', seq, contract, to }) as const);
    queue.deliveries.route(routed.from, routes);
  }
  const times: number[] = [];
  for (let n = 0; n < Math.min(DEQUEUES, rows / 2); n += 1) {
    const started = performance.now();
    queue.markProcessed(queue.dequeue()!.id);
    times.push(performance.now() - started);
  }
  queue.deleteQueue();
  return times.sort((a, b) => a - b)[times.length >> 1]! * 1_000;
}

async function main(): Promise<void> {
  try {
    const enqueuePerSecond = Math.round(Math.max(...[1, 2, 3].map(() => benchEnqueue())));
    say(`batch enqueue: ${enqueuePerSecond} events/s (mark: 50000)`);
    const endToEnd: number[] = [];
    for (let run = 1; run <= 3; run += 1) endToEnd.push(await benchEndToEnd(run));
    const endToEndPerSecond = Math.round(Math.max(...endToEnd));
    say(`end to end, one no-op handler of ${SLOTS} slots: ${endToEndPerSecond} events/s (mark: 10000)`);
    const spikeRssMiB = Math.round(await benchSpike());
    say(`spike of ${SPIKE}: ${spikeRssMiB} MiB RSS at most (mark: below 150)`);
    const few = benchDequeue(FEW);
    const many = benchDequeue(MANY);
    const dequeueGrowth = Math.round((many / few) * 100) / 100;
    say(
      `dequeue: ${few.toFixed(0)} µs at ${FEW} rows, ${many.toFixed(0)} µs at ${MANY}: ×${dequeueGrowth} (mark: flat)`,
    );
    if (asJson) say(JSON.stringify({ enqueuePerSecond, endToEndPerSecond, spikeRssMiB, dequeueGrowth }));
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

void main();
