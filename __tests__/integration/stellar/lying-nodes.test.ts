import { ChannelRepository } from '../../../src/stellar/submissions/channel-repository';
import { SubmissionRepository } from '../../../src/stellar/submissions/submission-repository';
import type { SubmissionRequest } from '../../../src/stellar/submission';
import type { StellarLayer } from '../../../src/stellar/stellar-layer';
import { startLyingEndpoint, type LyingEndpoint, type Tampering } from '../../support/stellar-rpc-tamper';
import {
  mintRequest,
  neverAborted,
  newManifestHash,
  openStellarFixture,
  submit,
  type StellarFixture,
} from '../../support/stellar-fixture';

const YEAR_S = 365 * 24 * 3600;
const BAD_SEQUENCE = { status: 'ERROR', errorResultXdr: 'AAAAAAAAAGT////7AAAAAA==' };
type Result = Record<string, unknown>;

describe('a node that lies, asked before one that does not', () => {
  let fixture: StellarFixture;
  let liar: LyingEndpoint;
  let submissions: SubmissionRepository;
  let channels: ChannelRepository;
  const signal = neverAborted();

  beforeAll(async () => {
    fixture = await openStellarFixture({ ledgerMs: 0 });
    liar = await startLyingEndpoint(fixture.simnet.rpcUrls[0]!);
    submissions = new SubmissionRepository(fixture.database.connection);
    channels = new ChannelRepository(fixture.database.connection);
  });
  afterEach(() => {
    liar.tamper((_call, result) => result);
    fixture.simnet.setFaults({});
  });
  afterAll(async () => {
    await fixture.close();
    await liar.close();
  });

  const openLayer = (urls = [liar.url, ...fixture.simnet.rpcUrls]): Promise<StellarLayer> =>
    fixture.openLayer({ SOROBAN_RPC_URLS: urls.join(',') });
  const wanted = (layer: StellarLayer): SubmissionRequest =>
    mintRequest(fixture.simnet.facts(), layer, newManifestHash());
  const begin = async (layer: StellarLayer): Promise<SubmissionRequest> => {
    const request = wanted(layer);
    await layer.submitter.prepare(request, signal);
    await layer.submitter.send(request, signal);
    return request;
  };
  const confirm = (layer: StellarLayer, request: SubmissionRequest, timeoutMs = 10_000) =>
    layer.submitter.confirm(request, { timeoutMs, signal });
  const attemptOf = async ({ intent }: SubmissionRequest) => (await submissions.find(intent))?.attempt;
  const landed = () => fixture.simnet.observer.transactions().length;
  /** Changes what the named methods answer; any method without a name. */
  const lie =
    (changes: (result: Result) => Result, ...methods: string[]): Tampering =>
    ({ method }, result) =>
      methods.length === 0 || methods.includes(method) ? { ...result, ...changes(result) } : result;
  const later = (result: Result, seconds: number): Result =>
    Object.fromEntries(
      ['latestLedgerCloseTime', 'closeTime']
        .filter((name) => name in result)
        .map((name) => [name, String(Number(result[name]) + seconds)]),
    );

  it('about the time: what is queued is not given up because one node says that its time is over', async () => {
    const layer = await openLayer();
    const request = await begin(layer);
    liar.tamper(lie((result) => later(result, 600)));

    expect(await confirm(layer, request, 200)).toMatchObject({ kind: 'unknown' });

    expect(await attemptOf(request)).not.toBeNull();
    expect(await fixture.withLedgers(() => confirm(layer, request))).toMatchObject({ kind: 'success' });
  });

  it('about the time, by years: transactions are made to end all the same', async () => {
    const layer = await openLayer();
    liar.tamper(lie((result) => later(result, YEAR_S)));
    await layer.events.getLatestLedger(signal);
    liar.tamper(() => null);
    await layer.events.getLatestLedger(signal);

    const request = await begin(layer);

    expect((await attemptOf(request))!.maxTime).toBeLessThan(Date.now() / 1000 + 3_600);
    fixture.simnet.closeLedger();
    expect(await confirm(layer, request)).toMatchObject({ kind: 'success' });
  });

  // C.7 row 7, #478: a balancer over nodes of different ages.
  it('about the time, back and forth: nothing is given up early, and nothing is born dead', async () => {
    const layer = await openLayer();
    let calls = 0;
    liar.tamper(
      lie((result) => {
        if ((calls += 1) % 2 === 0) return {};
        const { latestLedger } = result;
        return {
          ...later(result, -5),
          ...(typeof latestLedger === 'number' && { latestLedger: latestLedger - 6 }),
        };
      }),
    );
    const before = landed();
    for (let count = 0; count < 3; count += 1) {
      expect(await fixture.withLedgers(() => submit(layer, wanted(layer)))).toMatchObject({
        kind: 'success',
      });
    }
    expect(landed() - before).toBe(3);
  });

  it('about its ledger, far ahead: nothing that is stored counts from there', async () => {
    const layer = await openLayer();
    liar.tamper(
      lie(({ latestLedger, sequence }) => ({
        ...(typeof latestLedger === 'number' && { latestLedger: latestLedger + 1_000_000 }),
        ...(typeof sequence === 'number' && { sequence: sequence + 1_000_000 }),
      })),
    );
    // The honest one has been heard as well.
    await layer.events.getLatestLedger(signal);
    liar.tamper(() => null);
    await layer.events.getLatestLedger(signal);
    liar.tamper(
      lie(({ latestLedger }) => ({ latestLedger: Number(latestLedger) + 1_000_000 }), 'getLedgerEntries'),
    );
    await channels.release(layer.oracle.publicKey, '', { ledger: 0, sequence: null });

    const request = await begin(layer);
    expect((await attemptOf(request))!.signedAtLedger).toBeLessThanOrEqual(fixture.simnet.latestLedger);
    liar.tamper((_call, result) => result);
    expect(await fixture.withLedgers(() => confirm(layer, request))).toMatchObject({ kind: 'success' });
  });

  it('about the whole chain: of another history, it knows neither the transaction nor the account', async () => {
    const layer = await openLayer();
    const request = await begin(layer);
    const before = landed();
    liar.tamper(({ method }, result) => {
      if (method === 'getLedgerEntries') return { ...result, entries: [] };
      return method === 'getTransaction' ? { ...result, ...later(result, 600), status: 'NOT_FOUND' } : result;
    });
    expect(await confirm(layer, request, 200)).toMatchObject({ kind: 'unknown' });
    fixture.simnet.closeLedger();

    expect(await confirm(layer, request)).toMatchObject({ kind: 'success' });
    expect(landed() - before).toBe(1);
  });

  it.each<[string, Tampering]>([
    ['the result of a transaction', lie(() => ({ resultXdr: 'AAAA' }), 'getTransaction')],
    ['what a transaction returned', lie(() => ({ resultMetaXdr: '****' }), 'getTransaction')],
    ['a simulation', lie(() => ({ transactionData: 'AAAAAQ==' }), 'simulateTransaction')],
    ['the result of a simulation', lie(() => ({ results: [{ auth: [], xdr: '' }] }), 'simulateTransaction')],
    ['an account', lie(() => ({ entries: [{ key: '', xdr: 'AAAAAA==' }] }), 'getLedgerEntries')],
    ['why it refuses', lie(() => ({ status: 'ERROR', errorResultXdr: 'AAAA' }), 'sendTransaction')],
  ])('with garbage for %s: the next node is asked', async (_name, garbage) => {
    const layer = await openLayer();
    await channels.register([layer.oracle.publicKey]);
    liar.tamper(garbage);
    expect(await fixture.withLedgers(() => submit(layer, wanted(layer)))).toMatchObject({ kind: 'success' });
  });

  // B20: it is the submission itself that turns to the next endpoint.
  it('that it has no such method, or that the method is not for us: the next node is asked', async () => {
    const layer = await fixture.openLayer({
      SOROBAN_RPC_URLS: [fixture.simnet.rpcUrls[0]!, liar.url].join(','),
    });
    for (const code of [-32601, -32600]) {
      fixture.simnet.setFaults({
        rules: ['getTransaction', 'getLedgerEntries', 'getFeeStats'].map((method) => ({
          methods: [method],
          probability: 0.5,
          fault: { kind: 'rpcError', code, message: 'not on your plan' },
        })),
      });
      expect(await fixture.withLedgers(() => submit(layer, wanted(layer)))).toMatchObject({
        kind: 'success',
      });
    }
  });

  describe('about a sequence number', () => {
    // One process is held up between counting its send and hearing of it; the other has sent meanwhile.
    it('a refusal that arrives after a successor has sent as well ends nothing', async () => {
      const zombie = await openLayer([liar.url]);
      const successor = await openLayer(fixture.simnet.rpcUrls);
      const request = wanted(zombie);
      const before = landed();
      await zombie.submitter.prepare(request, signal);
      let letGo = (): void => undefined;
      const held = new Promise<void>((resolve) => (letGo = resolve));
      let arrive = (): void => undefined;
      const arrived = new Promise<void>((resolve) => (arrive = resolve));
      liar.tamper(async ({ method }, result) => {
        if (method !== 'sendTransaction') return result;
        arrive();
        await held;
        return { ...result, ...BAD_SEQUENCE };
      });
      const late = zombie.submitter.send(request, signal);
      await arrived;
      expect(await successor.submitter.send({ ...request, epoch: 2 }, signal)).toMatchObject({
        kind: 'sent',
      });
      letGo();
      await late;

      expect((await submissions.find(request.intent))?.attempt).not.toBeNull();
      fixture.simnet.closeLedger();
      expect(await confirm(successor, { ...request, epoch: 2 })).toMatchObject({ kind: 'success' });
      expect(landed() - before).toBe(1);
    });

    // C.7 row 7: a node behind a balancer that has not come as far as the one that gave the number.
    it('a node that lags behind refuses it: it is sent again, not built again', async () => {
      const layer = await openLayer();
      const request = wanted(layer);
      const prepared = await layer.submitter.prepare(request, signal);
      liar.tamper(
        lie(
          ({ latestLedger }) => ({ ...BAD_SEQUENCE, latestLedger: Number(latestLedger) - 3 }),
          'sendTransaction',
        ),
      );
      expect(await layer.submitter.send(request, signal)).toEqual({ ...prepared, kind: 'sent' });
      liar.tamper((_call, result) => result);
      expect(await fixture.withLedgers(() => confirm(layer, request))).toMatchObject({
        kind: 'success',
        hash: (prepared as { hash: string }).hash,
      });
    });
  });
});
