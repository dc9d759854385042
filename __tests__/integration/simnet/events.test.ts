import fc from 'fast-check';
import { nativeToScVal, scValToNative, xdr } from '@stellar/stellar-sdk';
import { endOfLedger } from '../../../src/simnet/event-id';
import { Bench } from './support';

interface Page {
  events: { id: string; ledger: number; txHash: string; topic: string[]; contractId: string }[];
  cursor: string;
  latestLedger: number;
  oldestLedger: number;
}

describe('getEvents', () => {
  let bench: Bench;

  beforeEach(async () => {
    bench = await Bench.start();
  });

  afterEach(() => bench.stop());

  const page = async (params: object, endpoint = 0): Promise<Page> => {
    const answer = await bench.call('getEvents', params, endpoint);
    if (answer.error) throw new Error(`${answer.error.code}: ${answer.error.message}`);
    return answer.result as unknown as Page;
  };

  const requester = () => bench.funded(0).publicKey();

  /** Emits that many verification requests in one ledger. */
  const emit = async (count: number): Promise<void> => {
    const landed = bench.net.actions.emitVerificationRequests(
      Array.from({ length: count }, (_, index) => ({
        manifestCid: `manifest-${index}`,
        mediaCid: `media-${index}`,
        requester: requester(),
      })),
    );
    bench.net.closeLedger();
    await landed;
  };

  const filters = () => [{ type: 'contract', contractIds: [bench.net.contracts.oracle] }];

  it('emits verification requests as topics and a map', async () => {
    await emit(1);
    const { events } = await page({ startLedger: 1000, filters: filters() });
    expect(events).toHaveLength(1);
    const [event] = events as unknown as [{ topic: string[]; value: string }];
    const native = (text: string): unknown => scValToNative(xdr.ScVal.fromXDR(text, 'base64'));
    expect(event.topic.map(native)).toEqual(['verification_requested', 1n]);
    expect(native(event.value)).toEqual({
      manifest_cid: 'manifest-0',
      media_cid: 'media-0',
      requester: requester(),
    });
  });

  it('emits compact events', async () => {
    const landed = bench.net.actions.emitCompactEvents([
      { flags: 0x0101, value: 7n, hash: Buffer.alloc(32, 1) },
    ]);
    bench.net.closeLedger();
    await landed;
    const { events } = await bench.server.getEvents({
      startLedger: 1000,
      filters: [{ type: 'contract', contractIds: [bench.net.contracts.bridge] }],
    });
    expect(events[0]!.topic.map((topic): unknown => scValToNative(topic))).toEqual(['EVENT', 'LOG']);
    expect(scValToNative(events[0]!.value)).toEqual({ flags: 0x0101, value: 7n, hash: Buffer.alloc(32, 1) });
  });

  it('shows every event once, in order, however small the pages are', async () => {
    const perLedger = [0, 3, 0, 0, 120, 1, 0, 7];
    for (const count of perLedger) {
      if (count === 0) bench.net.closeLedger();
      else await emit(count);
    }
    const all = await page({ startLedger: 1000, filters: filters(), pagination: { limit: 10_000 } });
    const total = perLedger.reduce((sum, count) => sum + count, 0);
    expect(all.events).toHaveLength(total);
    const sorted = all.events.map(({ id }) => id).toSorted();
    expect(all.events.map(({ id }) => id)).toEqual(sorted);

    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 40 }), async (limit) => {
        const seen: string[] = [];
        let next = await page({ startLedger: 1000, filters: filters(), pagination: { limit } });
        for (;;) {
          seen.push(...next.events.map(({ id }) => id));
          const isFull = next.events.length === limit;
          // A full page ends at its last event, any other at the last position of the last ledger.
          expect(next.cursor).toBe(isFull ? next.events.at(-1)!.id : endOfLedger(bench.net.latestLedger));
          if (!isFull) break;
          next = await page({ filters: filters(), pagination: { limit, cursor: next.cursor } });
        }
        expect(seen).toEqual(sorted);
      }),
      { numRuns: 5, examples: [[1], [131]] },
    );
  });

  it('carries on from the cursor of an empty page', async () => {
    const quiet = await page({ startLedger: 1000, filters: filters() });
    expect(quiet).toMatchObject({ events: [], cursor: '0000004299262263295-4294967295', latestLedger: 1000 });
    await emit(2);
    const next = await page({ filters: filters(), pagination: { cursor: quiet.cursor } });
    expect(next.events).toHaveLength(2);
    const tip = await page({ filters: filters(), pagination: { cursor: next.cursor } });
    expect(tip).toMatchObject({ events: [], cursor: next.cursor });
  });

  it('scans ten thousand ledgers at a time', async () => {
    bench.net.closeLedgers(10_005);
    await emit(1);
    const first = await page({ startLedger: 1000, filters: filters() });
    expect(first).toMatchObject({ events: [], cursor: '0000047244640255999-4294967295' });
    const second = await page({ filters: filters(), pagination: { cursor: first.cursor } });
    expect(second.events).toHaveLength(1);
  });

  it('refuses a start outside of the window, in the very words of the node', async () => {
    bench.net.closeLedgers(20);
    const words = { code: -32600, message: 'startLedger must be within the ledger range: 1000 - 1020' };
    expect((await bench.call('getEvents', { startLedger: 999 })).error).toEqual(words);
    expect((await bench.call('getEvents', { startLedger: 1021 })).error).toEqual(words);
    bench.net.setFaults({ rules: [{ fault: { kind: 'retention', ledgers: 5 } }] });
    const cursor = '0000004303557230591-4294967295';
    expect((await bench.call('getEvents', { pagination: { cursor } })).error).toEqual({
      code: -32600,
      message: 'startLedger must be within the ledger range: 1016 - 1020',
    });
  });

  it.each([
    [{}, 'startLedger must be positive'],
    [{ startLedger: 0 }, 'startLedger must be positive'],
    [
      { startLedger: 1000, pagination: { cursor: '0000004303557230591-4294967295' } },
      'ledger ranges and cursor cannot both be set',
    ],
    [{ startLedger: 1000, pagination: { limit: 10_001 } }, 'limit must not exceed 10000'],
    [{ startLedger: 1000, filters: Array.from({ length: 6 }, () => ({})) }, 'maximum 5 filters per request'],
    [
      { startLedger: 1000, filters: [{ contractIds: Array.from({ length: 6 }, () => 'C') }] },
      'filter 1 invalid: maximum 5 contract IDs per filter',
    ],
    [{ startLedger: 1000, filters: [{ contractIds: ['C'] }] }, 'filter 1 invalid: contract ID 1 invalid'],
    [
      { startLedger: 1000, filters: [{ topics: Array.from({ length: 6 }, () => ['*']) }] },
      'filter 1 invalid: maximum 5 topics per filter',
    ],
    [
      { startLedger: 1000, filters: [{ type: 'diagnostic' }] },
      "filter 1 invalid: filter type invalid: if set, type must be either 'system' or 'contract'",
    ],
    [{ pagination: { cursor: 'nonsense' } }, 'invalid cursor'],
  ])('refuses %j', async (params, message) => {
    expect((await bench.call('getEvents', params)).error).toEqual({ code: -32602, message });
  });

  it('matches topics by segment, by count and by wildcard', async () => {
    await emit(2);
    const requested = xdr.ScVal.scvSymbol('verification_requested').toXDR('base64');
    const second = nativeToScVal(2n, { type: 'u64' }).toXDR('base64');
    const count = async (...topics: string[][]): Promise<number> =>
      (await page({ startLedger: 1000, filters: [{ topics }] })).events.length;
    expect(await count([requested, '*'])).toBe(2);
    expect(await count([requested, second])).toBe(1);
    expect(await count([requested])).toBe(0);
    expect(await count([requested, '**'])).toBe(2);
    expect(await count(['*', '*', '**'], [requested, second])).toBe(3);
    // Without filters the fee of the transaction shows, at the head of its ledger.
    const all = await page({ startLedger: 1000 });
    expect(all.events).toHaveLength(3);
    expect(all.events[0]).toMatchObject({ id: '0000004299262263296-0000000000', transactionIndex: 0 });
  });

  it('shows less of the chain on a lagging endpoint, and another chain on a foreign one', async () => {
    await bench.stop();
    bench = await Bench.start({ endpoints: 3 });
    bench.net.setFaults({
      rules: [
        { endpoints: [1], fault: { kind: 'lag', ledgers: 2 } },
        { endpoints: [2], fault: { kind: 'otherHistory', ledgerOffset: -900 } },
      ],
    });
    bench.net.closeLedgers(3);
    await emit(1);
    const here = await page({ startLedger: 1000, filters: filters() });
    expect(here.events).toHaveLength(1);
    const lagging = await page({ startLedger: 1000, filters: filters() }, 1);
    expect(lagging).toMatchObject({ events: [], latestLedger: 1002 });
    // The cursor is ahead of the lagging node: the same error as one that has aged out.
    const ahead = await bench.call('getEvents', { pagination: { cursor: here.cursor } }, 1);
    expect(ahead.error?.message).toBe('startLedger must be within the ledger range: 1000 - 1002');
    const foreign = await page({ filters: filters(), pagination: { cursor: here.cursor } }, 2);
    expect(foreign).toMatchObject({ events: [], cursor: here.cursor, latestLedger: 104, oldestLedger: 100 });
    expect((await bench.servers[2]!.getTransaction(here.events[0]!.txHash)).status).toBe('NOT_FOUND');
    expect((await bench.servers[1]!.getTransaction(here.events[0]!.txHash)).status).toBe('NOT_FOUND');
  });
});
