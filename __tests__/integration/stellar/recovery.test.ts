import { ChannelPool } from '../../../src/stellar/submissions/channel-pool';
import { ChannelRepository } from '../../../src/stellar/submissions/channel-repository';
import { SubmissionRepository } from '../../../src/stellar/submissions/submission-repository';
import type { IntentId, TransactionHash } from '../../../src/stellar/submission';
import {
  mintRequest,
  neverAborted,
  newManifestHash,
  openStellarFixture,
  persist,
  submit,
  type StellarFixture,
} from '../../support/stellar-fixture';
import { until } from '../../support/worker-fixture';

describe('submissions that nobody follows any more', () => {
  let fixture: StellarFixture;
  let submissions: SubmissionRepository;
  let channels: ChannelRepository;
  const signal = neverAborted();

  beforeAll(async () => {
    fixture = await openStellarFixture({ ledgerMs: 0 });
    submissions = new SubmissionRepository(fixture.database.connection);
    channels = new ChannelRepository(fixture.database.connection);
  });
  afterAll(() => fixture.close());

  const request = (layer: Awaited<ReturnType<StellarFixture['openLayer']>>, hash = newManifestHash()) =>
    mintRequest(fixture.simnet.facts(), layer, hash);
  const holderOf = async (account: string) => (await channels.list([account]))[0]?.holder ?? null;
  const pastValidity = (): void => {
    fixture.simnet.advanceClock(30_000);
    fixture.simnet.closeLedgers(2);
  };

  it('signed and never sent: the sweep waits for the end of its validity, then frees its account', async () => {
    const layer = await fixture.openLayer();
    const abandoned = request(layer);
    await layer.submitter.prepare(abandoned, signal);

    // B14: what may still land is left alone, however long nobody touched it.
    fixture.simnet.closeLedgers(3);
    expect(await layer.recovery.sweep(signal)).toEqual({ settled: 0, undecided: 0, freed: 0 });
    expect(await holderOf(layer.oracle.publicKey)).toMatchObject({ intent: abandoned.intent });

    pastValidity();
    // The chain's clock is known from answers alone.
    await layer.events.getLatestLedger(signal);
    const other = await fixture.openLayer();
    await other.events.getLatestLedger(signal);
    const reports = await Promise.all([layer.recovery.sweep(signal), other.recovery.sweep(signal)]);

    expect(reports.every((report) => report.undecided === 0)).toBe(true);
    expect((await submissions.find(abandoned.intent))?.settled).toMatchObject({ kind: 'expired' });
    expect(await holderOf(layer.oracle.publicKey)).toBeNull();
    const next = await fixture.withLedgers(() => submit(layer, request(layer)));
    expect(next.kind).toBe('success');
  });

  it('sent and landed: the sweep learns it, and a claim that comes back gets that very outcome', async () => {
    const layer = await fixture.openLayer();
    const abandoned = request(layer);
    await layer.submitter.prepare(abandoned, signal);
    const sent = await layer.submitter.send(abandoned, signal);
    fixture.simnet.closeLedger();
    pastValidity();
    await layer.events.getLatestLedger(signal);

    expect(await layer.recovery.sweep(signal)).toMatchObject({ settled: 1 });
    expect(await holderOf(layer.oracle.publicKey)).toBeNull();

    const before = fixture.simnet.observer.transactions().length;
    const again = await submit(layer, { ...abandoned, epoch: 2 });
    expect(again).toMatchObject({ kind: 'success', hash: (sent as { hash: TransactionHash }).hash });
    expect(fixture.simnet.observer.transactions()).toHaveLength(before);
  });

  it('a lease under which nothing was signed ends, and the late signer can no longer commit', async () => {
    const layer = await fixture.openLayer({}, { buildLeaseMs: 40 });
    const account = layer.oracle.publicKey;
    const intent = 'mint:crashed' as IntentId;
    const token = ChannelPool.makeToken();
    await submissions.open(intent, 1);
    await submissions.beginBuilding(intent, 1, token);
    await channels.register([account]);
    const leased = await channels.lease(account, { intent, token });

    const next = await fixture.withLedgers(() => submit(layer, request(layer)));

    expect(next.kind).toBe('success');
    const committed = await submissions.commit(intent, 1, {
      token,
      hash: '00' as TransactionHash,
      envelopeXdr: '',
      feeBid: '100',
      sourceAccount: account,
      channelEpoch: leased!.epoch,
      sequence: '1',
      maxTime: 1,
      resourceFee: '0',
      signedAtLedger: 1,
      sequenceLedger: 1,
    });
    expect(committed).toBe(false);
  });

  it('an account whose holder had settled before it died is free at once', async () => {
    const layer = await fixture.openLayer();
    const account = layer.oracle.publicKey;
    const done = request(layer);
    await fixture.withLedgers(() => submit(layer, done));
    await channels.lease(account, { intent: done.intent, token: 'token of a settled attempt' });

    expect(await layer.recovery.sweep(signal)).toMatchObject({ freed: 1 });
    expect(await holderOf(account)).toBeNull();
  });

  it('one that is lost without an effect is over, and the next claim builds another', async () => {
    const layer = await fixture.openLayer();
    const gone = request(layer);
    const prepared = await layer.submitter.prepare(gone, signal);
    const { hash } = prepared as { hash: TransactionHash };
    const stored = (await submissions.find(gone.intent))!;
    await submissions.settle(stored, stored.attempt!, { kind: 'lost', hash });
    await channels.release(layer.oracle.publicKey, stored.attempt!.token, { ledger: 0, sequence: null });

    expect(await layer.submitter.confirm(gone, { timeoutMs: 500, signal })).toEqual({
      kind: 'expired',
      hash,
    });
    const next = await fixture.withLedgers(() => submit(layer, { ...gone, epoch: 2 }));
    expect(next).toMatchObject({ kind: 'success' });
  });

  it('the next free account is an urgent transaction’s, whoever waits longer and in whichever process', async () => {
    const [holder, ordinary, urgent] = [
      await fixture.openLayer(),
      await fixture.openLayer(),
      await fixture.openLayer(),
    ];
    const first = request(holder);
    await holder.submitter.prepare(first, signal);
    const landed: string[] = [];
    const landing = (layer: typeof holder, name: string, feeClass: 'standard' | 'urgent'): Promise<void> =>
      submit(layer, { ...request(layer), feeClass }).then(({ kind }) => {
        expect(kind).toBe('success');
        landed.push(name);
      });
    const small = [1, 2, 3, 4].map((number) => landing(ordinary, `small ${number}`, 'standard'));
    const building = fixture.database.connection.collection('stellarSubmissions');
    await until(
      'all to wait',
      async () => (await building.countDocuments({ building: { $ne: null } })) === 4,
    );
    const large = landing(urgent, 'large', 'urgent');
    await until('the next turn to be kept for it', async () => {
      const [account] = await channels.list([holder.oracle.publicKey]);
      return (account?.reservedBy ?? null) !== null;
    });
    await fixture.withLedgers(() => Promise.all([submit(holder, first), ...small, large]));
    expect(landed).toHaveLength(5);
    expect(landed[0]).toBe('large');
  });

  it('one that has waited long has its turn, though urgent ones keep coming', async () => {
    const layer = await fixture.openLayer({ STELLAR_CHANNEL_WAIT_MS: '60000' });
    const patient = request(layer);
    await submissions.open(patient.intent, 1);
    // It came more than a minute before those that overtake the others.
    const opened = fixture.database.connection.collection('stellarSubmissions');
    await opened.updateOne({ _id: patient.intent }, { $set: { openedAt: new Date(Date.now() - 90_000) } });
    const first = request(layer);
    await layer.submitter.prepare(first, signal);
    const landed: string[] = [];
    const landing = async (name: string, wanted: ReturnType<typeof request>): Promise<void> => {
      expect(await submit(layer, wanted)).toMatchObject({ kind: 'success' });
      landed.push(name);
    };
    const urgent = [1, 2, 3].map((number) =>
      landing(`urgent ${number}`, { ...request(layer), feeClass: 'urgent' }),
    );
    await until('them to wait', async () => (await opened.countDocuments({ building: { $ne: null } })) === 3);
    const old = landing('patient', patient);
    await until('all to wait', async () => (await opened.countDocuments({ building: { $ne: null } })) === 4);
    await fixture.withLedgers(() => Promise.all([submit(layer, first), ...urgent, old]));
    expect(landed[0]).toBe('patient');
  });

  it('a wait for an account that a deadline cuts off is no failure of its transaction', async () => {
    const layer = await fixture.openLayer();
    const first = request(layer);
    await layer.submitter.prepare(first, signal);
    await expect(layer.submitter.prepare(request(layer), AbortSignal.timeout(100))).rejects.toMatchObject({
      code: 'NO_FREE_CHANNEL',
    });
    await fixture.withLedgers(() => submit(layer, first));
  });

  it('an account whose process stalls after its transaction has landed serves those that wait', async () => {
    const stalled = await fixture.openLayer();
    const abandoned = request(stalled);
    await stalled.submitter.prepare(abandoned, signal);
    await stalled.submitter.send(abandoned, signal);
    const layer = await fixture.openLayer();

    const next = await fixture.withLedgers(() => submit(layer, request(layer)));

    expect(next.kind).toBe('success');
    const late = { timeoutMs: 1_000, signal };
    expect(await stalled.submitter.confirm(abandoned, late)).toMatchObject({ kind: 'success' });
  });

  // Ledgers count from the start again where a test network was reset; a lying node may have told any number.
  it('an account whose last ledger no node knows is in use again after a while', async () => {
    const layer = await fixture.openLayer({ STELLAR_CHANNEL_WAIT_MS: '300' });
    const { publicKey } = layer.oracle;
    await channels.register([publicKey]);
    await fixture.database.connection
      .collection<{ _id: string }>('stellarChannels')
      .updateOne(
        { _id: publicKey },
        { $set: { lastLedger: 9e8, sequence: null, freedAt: new Date(Date.now() - 3_600_000) } },
      );
    expect(await fixture.withLedgers(() => submit(layer, request(layer)))).toMatchObject({ kind: 'success' });
    const [channel] = await channels.list([publicKey]);
    expect(channel!.lastLedger).toBeLessThanOrEqual(fixture.simnet.latestLedger);
  });

  it('an account that someone else has used meanwhile costs one attempt, and no second transaction', async () => {
    const layer = await fixture.openLayer();
    const { publicKey } = layer.oracle;
    await fixture.withLedgers(() => submit(layer, request(layer)));
    const [{ sequence } = { sequence: null }] = await channels.list([publicKey]);
    await fixture.database.connection
      .collection<{ _id: string }>('stellarChannels')
      .updateOne({ _id: publicKey }, { $set: { sequence: String(BigInt(sequence!) - 1n) } });
    const wanted = request(layer);
    expect(await submit(layer, wanted)).toMatchObject({ kind: 'expired' });
    expect(await fixture.withLedgers(() => submit(layer, wanted))).toMatchObject({ kind: 'success' });
  });

  it('a build that is aborted leaves nothing behind', async () => {
    const layer = await fixture.openLayer({ STELLAR_RPC_TIMEOUT_MS: '60000' });
    const wanted = request(layer);
    fixture.simnet.setFaults({
      rules: [{ methods: ['getLedgerEntries'], fault: { kind: 'timeoutBefore', holdMs: 60_000 } }],
    });
    // Where the last transaction's number is known, nothing is asked.
    await fixture.database.connection
      .collection<{ _id: string }>('stellarChannels')
      .updateOne({ _id: layer.oracle.publicKey }, { $set: { sequence: null } });
    const controller = new AbortController();
    const pending = layer.submitter.prepare(wanted, controller.signal).catch((error: unknown) => error);
    while ((await holderOf(layer.oracle.publicKey)) === null) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    const reason = new Error('lease lost');
    controller.abort(reason);

    expect(await pending).toBe(reason);
    fixture.simnet.setFaults({});
    expect(await holderOf(layer.oracle.publicKey)).toBeNull();
    expect(await submissions.find(wanted.intent)).toMatchObject({ building: null, attempt: null });
  });

  it('a claim with an older epoch is refused at every step', async () => {
    const layer = await fixture.openLayer();
    const old = request(layer);
    const prepared = await layer.submitter.prepare(old, signal);
    const later = { ...old, epoch: 2 };
    // The successor goes on with what is on its way instead of building a second transaction.
    expect(await layer.submitter.prepare(later, signal)).toEqual(prepared);

    expect(await layer.submitter.prepare(old, signal)).toEqual({ kind: 'superseded' });
    expect(await layer.submitter.send(old, signal)).toEqual({ kind: 'superseded' });
    expect(await layer.submitter.confirm(old, { timeoutMs: 1_000, signal })).toEqual({ kind: 'superseded' });
    const { outcome } = await fixture.withLedgers(() => persist(layer, later, { firstEpoch: 2 }));
    expect(outcome.kind).toBe('success');
  });

  it('stops following the moment that a later claim takes over', async () => {
    const layer = await fixture.openLayer();
    const old = request(layer);
    await layer.submitter.prepare(old, signal);
    await layer.submitter.send(old, signal);
    const zombie = layer.submitter.confirm(old, { timeoutMs: 20_000, signal });

    const successor = await fixture.openLayer();
    await successor.submitter.prepare({ ...old, epoch: 2 }, signal);

    expect(await zombie).toEqual({ kind: 'superseded' });
    const { outcome } = await fixture.withLedgers(() => persist(successor, old, { firstEpoch: 3 }));
    expect(outcome.kind).toBe('success');
  });

  it('no two claims of one intent ever sign two transactions, whatever their order', async () => {
    const layers = await Promise.all([1, 2, 3].map(() => fixture.openLayer({ STELLAR_CHANNEL_COUNT: '3' })));
    const wanted = request(layers[0]!);
    const before = fixture.simnet.observer.transactions().length;
    const channelCreations = 1;

    await fixture.withLedgers(() =>
      Promise.all(
        layers.map((layer, index) =>
          persist(layer, wanted, { firstEpoch: index + 1 }).catch(() => undefined),
        ),
      ),
    );

    expect(fixture.simnet.observer.transactions().length - before).toBe(channelCreations + 1);
    const { outcome } = await persist(layers[0]!, wanted, { firstEpoch: 100 });
    expect(outcome.kind).toBe('success');
  });

  it('says so when no source account gets free', async () => {
    const layer = await fixture.openLayer({ STELLAR_CHANNEL_WAIT_MS: '50' });
    const first = request(layer);
    await layer.submitter.prepare(first, signal);

    await expect(layer.submitter.prepare(request(layer), signal)).rejects.toMatchObject({
      code: 'NO_FREE_CHANNEL',
      kind: 'transient',
    });
    await fixture.withLedgers(() => persist(layer, first));
  });

  it('refuses to confirm what was never prepared', async () => {
    const layer = await fixture.openLayer();
    await expect(layer.submitter.confirm(request(layer), { timeoutMs: 100, signal })).rejects.toMatchObject({
      code: 'NOTHING_PREPARED',
      kind: 'permanent',
    });
  });
});
