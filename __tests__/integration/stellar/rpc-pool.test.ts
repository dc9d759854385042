import { getEventListeners } from 'node:events';
import { inspect } from 'node:util';
import { z } from 'zod';
import { PermanentError, TimeoutError, TransientError } from '../../../src/platform/errors';
import { RpcNodeError, RpcRefusedError } from '../../../src/stellar/rpc/rpc-errors';
import { RpcPool, type RpcPoolOptions } from '../../../src/stellar/rpc/rpc-pool';
import { startRpcStub, STUB_PASSPHRASE, type RpcStub, type StubReply } from '../../support/stellar-rpc-stub';

const schema = z.object({ sequence: z.number() });
const latest = (sequence: number): StubReply => ({ result: { sequence, closeTime: '1760000000' } });
const thrownBy = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => {
      throw new Error('expected a rejection');
    },
    (error: unknown) => error,
  );

describe('a pool of RPC endpoints', () => {
  let stubs: RpcStub[] = [];
  const pools: RpcPool[] = [];
  let nowMs = 0;
  const clock = { now: () => 1_760_000_000_000 + nowMs, monotonicMs: () => nowMs };

  const start = async (count: number): Promise<RpcStub[]> => {
    stubs = await Promise.all(Array.from({ length: count }, () => startRpcStub()));
    return stubs;
  };
  const openPool = (overrides: Partial<RpcPoolOptions> = {}): RpcPool => {
    const pool = new RpcPool({
      urls: stubs.map((stub) => stub.url),
      networkPassphrase: STUB_PASSPHRASE,
      timeoutMs: 5_000,
      failureThreshold: 3,
      cooldownMs: 30_000,
      maxLagLedgers: 5,
      clock,
      ...overrides,
    });
    pools.push(pool);
    return pool;
  };
  const ask = (pool: RpcPool, options: { minLedger?: number; stickyKey?: string; once?: boolean } = {}) =>
    pool.call('getLatestLedger', undefined, { schema, signal: new AbortController().signal, ...options });
  const until = async (condition: () => boolean): Promise<void> => {
    while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
  };

  afterEach(async () => {
    pools.splice(0).forEach((pool) => pool.close());
    await Promise.all(stubs.map((stub) => stub.close()));
    nowMs = 0;
  });

  it('keeps to the first endpoint while that one answers', async () => {
    const [first, second] = await start(2);
    const pool = openPool();

    for (let call = 0; call < 5; call += 1) await ask(pool);

    expect(first!.callsOf('getLatestLedger')).toHaveLength(5);
    expect(second!.calls).toHaveLength(0);
  });

  it.each<[string, StubReply]>([
    ['a refused answer in time', 'silence'],
    ['a cut connection', 'cut'],
    ['429', { status: 429 }],
    ['500', { status: 500 }],
    ['503', { status: 503 }],
    ['an answer that is no JSON-RPC', { status: 200, body: '<html>welcome</html>' }],
    ['a redirect', { status: 302, headers: { location: 'http://127.0.0.1:9/elsewhere' } }],
    ['an answer without end', { status: 200, body: 'x'.repeat(65 * 1024 * 1024) }],
  ])('turns to the next endpoint on %s, and benches the first after three', async (_name, fault) => {
    const [first, second] = await start(2);
    first!.answer(({ method }) => (method === 'getLatestLedger' ? fault : undefined));
    const pool = openPool(fault === 'silence' ? { timeoutMs: 300 } : {});

    for (let call = 0; call < 6; call += 1) await ask(pool);

    expect(first!.callsOf('getLatestLedger')).toHaveLength(3);
    expect(second!.callsOf('getLatestLedger')).toHaveLength(6);
    expect(pool.health().map((endpoint) => endpoint.state)).toEqual(['open', 'closed']);
  });

  // C9: one bad request, asked often, used to take every endpoint out of use.
  it('never benches an endpoint for what it says about a request', async () => {
    const [only] = await start(1);
    const pool = openPool();
    await ask(pool);
    only!.answer(() => ({ error: { code: -32602, message: 'invalid parameters' } }));
    for (let call = 0; call < 5; call += 1) {
      expect(await thrownBy(ask(pool))).toBeInstanceOf(RpcRefusedError);
    }
    only!.answer(() => ({ error: { code: -32603, message: 'internal' } }));
    expect(await thrownBy(ask(pool))).toBeInstanceOf(RpcNodeError);

    expect(pool.health()).toMatchObject([{ state: 'closed', consecutiveFailures: 0 }]);
  });

  // A9: "500" stands in many a number, and "invalid" in many a message.
  it('decides what a failure means by how it came, never by its words', async () => {
    const [only] = await start(1);
    const pool = openPool();
    await ask(pool);
    const kindOf = async (fault: StubReply): Promise<unknown> => {
      only!.answer(() => fault);
      return ((await thrownBy(ask(pool, { once: true }))) as TransientError | PermanentError).kind;
    };
    const words = 'invalid argument: timeout after 500 ms, ECONNRESET, not found';
    expect(await kindOf({ error: { code: -32602, message: words } })).toBe('permanent');
    expect(await kindOf({ error: { code: -32603, message: words } })).toBe('transient');
    expect(await kindOf({ status: 404, body: words })).toBe('transient');
  });

  it('never benches the last endpoint', async () => {
    const [first, second] = await start(2);
    const pool = openPool();
    await ask(pool);
    for (const stub of [first!, second!]) stub.answer(() => ({ status: 500 }));
    for (let call = 0; call < 4; call += 1) await thrownBy(ask(pool, { once: true }));
    await thrownBy(ask(pool));
    expect(pool.health().map((endpoint) => endpoint.state)).toEqual(['open', 'open']);

    first!.answer(() => undefined);
    second!.answer(() => undefined);
    await expect(ask(pool)).resolves.toMatchObject({ value: { sequence: 1000 } });
  });

  it('takes a benched endpoint back after its cool-down, when a probe finds it caught up', async () => {
    const [first, second] = await start(2);
    const pool = openPool();
    await ask(pool);
    first!.answer(() => ({ status: 502 }));
    for (let call = 0; call < 3; call += 1) await ask(pool);
    expect(pool.health()[0]).toMatchObject({ state: 'open' });

    first!.answer(({ method }) =>
      method === 'getHealth' ? { result: { status: 'healthy', latestLedger: 900 } } : undefined,
    );
    nowMs += 30_000;
    await ask(pool);
    await until(() => first!.callsOf('getHealth').length === 1 && pool.health()[0]!.state === 'open');
    expect(pool.health()[0]!.latestLedger).toBe(900);

    first!.answer(() => undefined);
    nowMs += 30_000;
    await ask(pool);
    expect(first!.callsOf('getHealth')).toHaveLength(1);
    nowMs += 30_000;
    await ask(pool);
    await until(() => pool.health()[0]!.state === 'closed');
    await ask(pool);
    expect(second!.callsOf('getLatestLedger')).toHaveLength(6);
    expect(first!.callsOf('getLatestLedger')).toHaveLength(5);
  });

  it('leaves an endpoint alone for as long as Retry-After says, and tells the caller when all do', async () => {
    const [first, second] = await start(2);
    const pool = openPool();
    await ask(pool);
    first!.answer(() => ({ status: 429, headers: { 'retry-after': '7' } }));
    await ask(pool);
    await ask(pool);
    expect(first!.callsOf('getLatestLedger')).toHaveLength(2);

    second!.answer(() => ({ status: 503, headers: { 'retry-after': '20' } }));
    const error = await thrownBy(ask(pool));
    expect(error).toBeInstanceOf(TransientError);
    const again = await thrownBy(ask(pool));
    expect(again).toMatchObject({ code: 'RPC_RATE_LIMITED', retryAfterMs: 7_000 });
    const before = first!.calls.length + second!.calls.length;
    await thrownBy(ask(pool));
    expect(first!.calls.length + second!.calls.length).toBe(before);

    first!.answer(() => undefined);
    nowMs += 7_001;
    await expect(ask(pool)).resolves.toBeDefined();
  });

  it('takes a wish to be left alone for days for a mistake, and waits for none while another is awake', async () => {
    const [first, second] = await start(2);
    const pool = openPool();
    await ask(pool);
    first!.answer(() => ({ status: 500 }));
    second!.answer(({ method }) =>
      method === 'getLatestLedger' ? { status: 503, headers: { 'retry-after': '999999999' } } : undefined,
    );
    expect(await thrownBy(ask(pool))).not.toHaveProperty('retryAfterMs', expect.any(Number));
    first!.answer(() => ({ status: 429, headers: { 'retry-after': '999999999' } }));
    nowMs += 30_000;
    await thrownBy(ask(pool));
    expect(await thrownBy(ask(pool))).toMatchObject({ retryAfterMs: 30_000 });

    // A probe is a call like any other.
    const before = second!.calls.length;
    nowMs += 29_000;
    await thrownBy(ask(pool));
    expect(second!.calls).toHaveLength(before);
  });

  it("passes over an endpoint that doesn't tell which network it serves", async () => {
    const [other, ours] = await start(2);
    other!.answer(() => ({ error: { code: -32601, message: 'the method eth_getNetwork does not exist' } }));
    const pool = openPool();
    await ask(pool);
    expect(other!.callsOf('getLatestLedger')).toHaveLength(0);
    expect(ours!.callsOf('getLatestLedger')).toHaveLength(1);
  });

  it('probes no endpoint of another network, whose ledgers would make ours look late', async () => {
    const [foreign, ours] = await start(2);
    foreign!.answer(({ method }) => (method === 'getNetwork' ? 'cut' : undefined));
    const pool = openPool();
    for (let call = 0; call < 3; call += 1) await ask(pool);
    expect(pool.health()[0]).toMatchObject({ state: 'open' });
    foreign!.answer(({ method }) => {
      if (method === 'getNetwork') return { result: { passphrase: 'Another Network' } };
      return { result: { status: 'healthy', latestLedger: 60_000_000, oldestLedger: 1 } };
    });
    nowMs += 30_000;
    await ask(pool);
    await until(() => pool.health()[0]!.foreign);
    expect(foreign!.callsOf('getHealth')).toHaveLength(0);

    ours!.answer(() => ({ status: 500 }));
    for (let call = 0; call < 3; call += 1) await thrownBy(ask(pool, { once: true }));
    ours!.answer(() => undefined);
    await ask(pool);
    expect(pool.health()[1]).toMatchObject({ state: 'closed' });
  });

  it('sends the password of an endpoint in a header, and quotes it nowhere', async () => {
    const [only] = await start(1);
    const url = new URL(only!.url);
    url.username = 'customer';
    url.password = 'hunter2%2F';
    const pool = openPool({ urls: [url.href] });
    await ask(pool);
    only!.answer(() => 'cut');
    const error = await thrownBy(ask(pool, { once: true }));
    expect(inspect(error, { depth: 9 })).not.toMatch(/hunter2|customer/);
    expect(only!.authorizations).toContain(`Basic ${Buffer.from('customer:hunter2/').toString('base64')}`);
    const broken = await thrownBy(
      Promise.resolve().then(() => openPool({ urls: ['http://me:hunter2@[oops'] })),
    );
    expect(inspect(broken, { depth: 9 })).not.toContain('hunter2');
    expect(broken).toMatchObject({ code: 'INVALID_RPC_URL', kind: 'permanent' });
  });

  it('never asks an endpoint of another network', async () => {
    const [foreign, ours] = await start(2);
    foreign!.answer(({ method }) =>
      method === 'getNetwork' ? { result: { passphrase: 'Another Network' } } : undefined,
    );
    const pool = openPool();

    await ask(pool);
    await ask(pool);

    expect(foreign!.calls.map((call) => call.method)).toEqual(['getNetwork']);
    expect(ours!.callsOf('getLatestLedger')).toHaveLength(2);
    expect(pool.health()[0]).toMatchObject({ foreign: true });
  });

  it('says which network was found in the place of which, where no endpoint serves ours', async () => {
    const [foreign] = await start(1);
    foreign!.answer(({ method }) =>
      method === 'getNetwork' ? { result: { passphrase: 'Another Network' } } : undefined,
    );
    const error = await thrownBy(ask(openPool(), { once: true }));
    expect(inspect(error, { depth: 9 })).toMatch(
      /serves another network: "Another Network", while STELLAR_NETWORK_PASSPHRASE is "[^"]+"/,
    );
  });

  // C.7 row 7: a node that says it is healthy while its entries are stale leads to a bad sequence.
  it('passes over an answer from before the ledger that the caller already knows', async () => {
    const [lagging, ahead] = await start(2);
    lagging!.answer(({ method }) => (method === 'getLatestLedger' ? latest(995) : undefined));
    const pool = openPool();

    const answer = await ask(pool, { minLedger: 1000 });

    expect(answer.value.sequence).toBe(1000);
    expect(ahead!.callsOf('getLatestLedger')).toHaveLength(1);
    // Known to be behind, it is not asked first again; and it is no fault of the way there.
    await ask(pool, { minLedger: 1000 });
    expect(lagging!.callsOf('getLatestLedger')).toHaveLength(1);
    expect(pool.health()[0]).toMatchObject({ state: 'closed', consecutiveFailures: 0 });
    lagging!.answer(() => latest(995));
    ahead!.answer(() => latest(999));
    expect(await thrownBy(ask(pool, { minLedger: 1000, once: true }))).toMatchObject({ code: 'RPC_LAGGING' });
  });

  it("keeps an account's calls at the endpoint that served them last", async () => {
    const [first, second] = await start(2);
    const pool = openPool();
    first!.answer(() => ({ status: 500 }));
    await ask(pool, { stickyKey: 'GABC' });
    first!.answer(() => undefined);

    await ask(pool, { stickyKey: 'GABC' });
    await ask(pool, { stickyKey: 'GDEF' });

    expect(second!.callsOf('getLatestLedger')).toHaveLength(2);
    expect(first!.callsOf('getLatestLedger')).toHaveLength(1);
  });

  it('gives every call a deadline and stops at once when its signal aborts', async () => {
    const [only] = await start(1);
    const pool = openPool({ timeoutMs: 300 });
    await ask(pool);
    only!.answer(() => 'silence');
    expect(await thrownBy(ask(pool, { once: true }))).toBeInstanceOf(TimeoutError);

    const controller = new AbortController();
    const pending = thrownBy(pool.call('getLatestLedger', undefined, { schema, signal: controller.signal }));
    const reason = new Error('lease lost');
    await until(() => only!.callsOf('getLatestLedger').length === 3);
    controller.abort(reason);
    expect(await pending).toBe(reason);
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0);
  });

  it('names an endpoint by its origin alone, in errors and in health', async () => {
    const [only] = await start(1);
    const pool = openPool();
    await ask(pool);
    const faults: StubReply[] = [
      { status: 500 },
      'cut',
      { error: { code: -32602, message: 'no' } },
      { status: 200, body: '' },
      { result: { sequence: 'x' } },
    ];
    for (const fault of faults) {
      only!.answer(() => fault);
      const error = await thrownBy(ask(pool, { once: true }));
      expect(error instanceof TransientError || error instanceof PermanentError).toBe(true);
      const { message, details, ...fields } = error as PermanentError;
      expect(JSON.stringify([message, details, fields, pool.health()])).not.toContain('key-of-a-customer');
      expect(message).toContain(new URL(only!.url).origin);
    }
  });

  it('tells the time on chain from the close times it sees', async () => {
    await start(1);
    const pool = openPool();
    expect(pool.chainTimeMs()).toBeNull();
    await ask(pool);
    nowMs += 2_500;
    await ask(pool);
    expect(pool.chainTimeMs()).toBe(1_760_000_000_000 + 2_500);
  });
});
