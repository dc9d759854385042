import fc from 'fast-check';
import type { RawEvent } from '../../../src/ingestion/event-source';
import { CONTRACT_A, CONTRACT_B, makeEvents, ScriptedChain, type Fault } from '../../support/ingestion-chain';
import {
  queueDirectory,
  recordingHandler,
  until,
  type RecordingHandler,
} from '../../support/ingestion-fixture';
import { makePropagator } from '../../support/ingestion-propagator';

const directory = queueDirectory();
let files = 0;
afterAll(() => directory.remove());

const fault: fc.Arbitrary<Fault | null> = fc.oneof(
  { weight: 3, arbitrary: fc.constant(null) },
  { weight: 1, arbitrary: fc.constant<Fault>({ kind: 'down' }) },
  { weight: 1, arbitrary: fc.constant<Fault>({ kind: 'too_heavy' }) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 30 }).map((by): Fault => ({ kind: 'lagging', by })) },
);
const scenario = fc.record({
  count: fc.integer({ min: 20, max: 120 }),
  perLedger: fc.integer({ min: 1, max: 30 }),
  pageLimit: fc.integer({ min: 1, max: 40 }),
  scanLedgers: fc.integer({ min: 3, max: 50 }),
  faults: fc.array(fault, { maxLength: 40 }),
  /** Handled events after which the process is stopped and started again. */
  restarts: fc.array(fc.integer({ min: 1, max: 60 }), { maxLength: 3 }),
  /** Every n-th call of a handler fails, but for its last tries. */
  failEvery: fc.integer({ min: 2, max: 6 }),
  batch: fc.integer({ min: 1, max: 10 }),
});

/** Fails now and then, never often enough to spend an event's tries. */
function flaky(name: string, failEvery: number, batch: number, ordered: boolean): RecordingHandler {
  let calls = 0;
  return recordingHandler(
    { name, batch, ordered, concurrency: 3, retry: { maxAttempts: 50, baseDelayMs: 1, maxDelayMs: 2 } },
    async (_, attempt) => {
      await new Promise((resolve) => setImmediate(resolve));
      if ((calls += 1) % failEvery === 0 && attempt < 40) throw new Error('now and then');
    },
  );
}

function expectCursorBehindStorage(
  stored: Set<string>,
  cursor: string | undefined,
  events: RawEvent[],
): void {
  for (const { id } of events) if (cursor !== undefined && id <= cursor) expect(stored).toContain(id);
}

it('whatever goes wrong, every event reaches every handler, in order where asked for, and no cursor is ahead of storage', async () => {
  await fc.assert(
    fc.asyncProperty(
      scenario,
      async ({ count, perLedger, pageLimit, scanLedgers, faults, restarts, failEvery, batch }) => {
        const events = makeEvents(count, { perLedger, contracts: [CONTRACT_A, CONTRACT_B] });
        const chain = new ScriptedChain(events, events.at(-1)!.ledger + 2);
        chain.scanLedgers = scanLedgers;
        chain.faults.push(...faults);
        const queuePath = directory.file(`property${(files += 1)}.db`);
        const any = flaky('any', failEvery, batch, false);
        const inOrder = flaky('in-order', failEvery, batch, true);
        const ids = events.map(({ id }) => id);
        for (const handledBefore of [...restarts.sort((a, b) => a - b), Number.POSITIVE_INFINITY]) {
          const propagator = makePropagator({
            source: chain,
            queuePath,
            contractIds: [CONTRACT_A, CONTRACT_B],
            handlers: [any.handler, inOrder.handler],
            tuning: { pageLimit, pollIntervalMs: 1, processIntervalMs: 1, maxPollBackOffMs: 2 },
          });
          propagator.start();
          const isDone = () => propagator.getQueueStats().processed === count;
          await until(() => isDone() || any.handled.length >= handledBefore, 'the next stage');
          const stored = new Set(propagator.queue.store.readAfter(0, count + 1).map(({ event }) => event.id));
          for (const contractId of [CONTRACT_A, CONTRACT_B]) {
            const position = propagator.queue.store.positions().get(contractId);
            expectCursorBehindStorage(
              stored,
              position?.cursor,
              events.filter((event) => event.contractId === contractId),
            );
          }
          await propagator.stop();
        }
        expect([...new Set(any.handled)].sort()).toEqual(ids);
        for (const contractId of [CONTRACT_A, CONTRACT_B]) {
          const wanted = events.filter((event) => event.contractId === contractId).map(({ id }) => id);
          expect([...new Set(inOrder.handled.filter((id) => wanted.includes(id)))]).toEqual(wanted);
        }
      },
    ),
    { numRuns: 12 },
  );
});
