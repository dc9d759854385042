import type { rpc } from '@stellar/stellar-sdk';
import { Bench } from './support';

describe('faults', () => {
  let bench: Bench;

  beforeEach(async () => {
    bench = await Bench.start({ endpoints: 2 });
  });

  afterEach(() => bench.stop());

  const send =
    (timeoutMs = 5_000, endpoint = 0) =>
    async (envelopeXdr: string) => {
      const response = await fetch(bench.net.rpcUrls[endpoint]!, {
        method: 'POST',
        body: JSON.stringify({
          jsonrpc: '2.0',
          id: 7,
          method: 'sendTransaction',
          params: { transaction: envelopeXdr },
        }),
        signal: AbortSignal.timeout(timeoutMs),
      });
      return { status: response.status, headers: response.headers, body: await response.text() };
    };

  const onSend = (fault: object, more: object = {}) =>
    bench.net.setFaults({ rules: [{ methods: ['sendTransaction'], ...more, fault } as never] });

  const statusOf = async (hash: string) => (await bench.server.getTransaction(hash)).status;

  it.each([
    ['dropReply', { kind: 'dropReply' }, 'SUCCESS'],
    ['dropBefore', { kind: 'dropBefore' }, 'NOT_FOUND'],
    ['timeoutAfter', { kind: 'timeoutAfter', holdMs: 60_000 }, 'SUCCESS'],
    ['timeoutBefore', { kind: 'timeoutBefore', holdMs: 60_000 }, 'NOT_FOUND'],
  ])('%s: the sender learns nothing, the ledger knows', async (_name, fault, status) => {
    const prepared = await bench.prepareMint('manifest');
    onSend(fault);
    await expect(send(150)(prepared.toXDR())).rejects.toThrow();
    bench.net.closeLedger();
    expect(await statusOf(prepared.hash().toString('hex'))).toBe(status);
  });

  it('httpStatus: 429 says when to come back, and nothing was accepted', async () => {
    const prepared = await bench.prepareMint('manifest');
    onSend({ kind: 'httpStatus', status: 429, retryAfterSeconds: 2 }, { times: 1 });
    const refused = await send()(prepared.toXDR());
    expect(refused.status).toBe(429);
    expect(refused.headers.get('retry-after')).toBe('2');
    expect((await send()(prepared.toXDR())).body).toContain('PENDING');
  });

  it('tryAgainLater, rpcError and unhealthy are answers, not outages', async () => {
    const prepared = await bench.prepareMint('manifest');
    onSend({ kind: 'tryAgainLater' }, { times: 1 });
    expect((await bench.server.sendTransaction(prepared)).status).toBe('TRY_AGAIN_LATER');
    expect((await bench.server.sendTransaction(prepared)).status).toBe('PENDING');
    bench.net.setFaults({
      rules: [
        { methods: ['getHealth'], fault: { kind: 'unhealthy' } },
        {
          methods: ['getEvents'],
          fault: { kind: 'rpcError', code: -32001, message: 'request exceeded processing limit threshold' },
        },
      ],
    });
    expect((await bench.call('getHealth')).error?.code).toBe(-32603);
    expect((await bench.call('getEvents', { startLedger: 1000 })).error?.code).toBe(-32001);
    expect((await bench.call('getNothing')).error?.code).toBe(-32601);
  });

  it('strikes only where a rule says: endpoint, after, times', async () => {
    bench.net.setFaults({
      rules: [{ endpoints: [1], after: 1, times: 2, fault: { kind: 'httpStatus', status: 503 } }],
    });
    const statuses = async (endpoint: number): Promise<number[]> => {
      const seen: number[] = [];
      for (let call = 0; call < 5; call += 1) {
        const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'getHealth' });
        seen.push((await fetch(bench.net.rpcUrls[endpoint]!, { method: 'POST', body })).status);
      }
      return seen;
    };
    expect(await statuses(0)).toEqual([200, 200, 200, 200, 200]);
    expect(await statuses(1)).toEqual([200, 503, 503, 200, 200]);
    expect(bench.net.observer.stats().faultsByKind).toEqual({ httpStatus: 2 });
  });

  it('latency holds the answer back', async () => {
    bench.net.setFaults({ rules: [{ fault: { kind: 'latency', ms: 120 } }] });
    const before = performance.now();
    await bench.server.getHealth();
    expect(performance.now() - before).toBeGreaterThanOrEqual(110);
  });

  it('surge pricing leaves the cheap ones waiting and charges the others the going rate', async () => {
    bench.net.setFaults({ rules: [{ fault: { kind: 'surge', minFeeRate: 5_000 } }] });
    const cheap = await bench.prepareMint('manifest');
    await bench.server.sendTransaction(cheap);
    bench.net.closeLedger();
    expect(await statusOf(cheap.hash().toString('hex'))).toBe('NOT_FOUND');
    bench.net.setFaults({ rules: [{ fault: { kind: 'surge', minFeeRate: 100 } }] });
    bench.net.closeLedger();
    expect(await statusOf(cheap.hash().toString('hex'))).toBe('SUCCESS');
  });

  it('a careful client gets through thirty per cent of faults on every endpoint', async () => {
    bench.net.setFaults({ rate: 0.3, seed: 11, holdMs: 20 });
    const stubborn = async <T>(ask: (server: rpc.Server) => Promise<T>): Promise<T> => {
      for (let attempt = 0; ; attempt += 1) {
        try {
          return await ask(bench.servers[attempt % 2]!);
        } catch (error) {
          if (attempt > 50) throw error;
        }
      }
    };
    for (let index = 0; index < 5; index += 1) {
      const account = await stubborn((server) => server.getAccount(bench.net.oracleKeypair.publicKey()));
      bench.server.getAccount = () => Promise.resolve(account);
      const draft = await bench.build(bench.net.oracleKeypair, bench.mintOperation(`manifest-${index}`));
      const prepared = await stubborn((server) => server.prepareTransaction(draft));
      prepared.sign(bench.net.oracleKeypair);
      for (;;) {
        const { status } = await stubborn((server) => server.sendTransaction(prepared));
        if (status !== 'TRY_AGAIN_LATER') break;
      }
      bench.net.closeLedger();
    }
    expect(bench.net.observer.certificates().map(({ manifestHash }) => manifestHash)).toEqual([
      'manifest-0',
      'manifest-1',
      'manifest-2',
      'manifest-3',
      'manifest-4',
    ]);
    expect(bench.net.observer.stats().faultsByKind).not.toEqual({});
  });
});
