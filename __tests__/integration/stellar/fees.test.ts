import { Keypair } from '@stellar/stellar-sdk';
import { SubmissionRepository } from '../../../src/stellar/submissions/submission-repository';
import type { StellarLayer } from '../../../src/stellar/stellar-layer';
import {
  mintRequest,
  neverAborted,
  newManifestHash,
  openStellarFixture,
  submit,
  type StellarFixture,
} from '../../support/stellar-fixture';
import { recordingMetrics } from '../../support/stellar-metrics';

describe('what a transaction bids', () => {
  let fixture: StellarFixture;
  let submissions: SubmissionRepository;
  const signal = neverAborted();

  beforeAll(async () => {
    fixture = await openStellarFixture({ ledgerMs: 0 });
    submissions = new SubmissionRepository(fixture.database.connection);
  });
  beforeEach(() => fixture.simnet.setFaults({}));
  afterAll(() => fixture.close());

  const request = (layer: StellarLayer, overrides: Parameters<typeof mintRequest>[3] = {}) =>
    mintRequest(fixture.simnet.facts(), layer, newManifestHash(), overrides);
  const transaction = (hash: string) =>
    fixture.simnet.observer.transactions().find((one) => one.hash === hash || one.innerHash === hash);
  const surge = (minFeeRate: number): void =>
    fixture.simnet.setFaults({ rules: [{ fault: { kind: 'surge', minFeeRate } }] });

  it('is not signed at all where the resources would cost more than allowed', async () => {
    const thrifty = await fixture.openLayer({ STELLAR_RESOURCE_FEE_CAP_STROOPS: '100' });
    const dear = request(thrifty);
    await expect(thrifty.submitter.prepare(dear, signal)).rejects.toMatchObject({
      code: 'RESOURCE_FEE_OVER_CAP',
      message: expect.stringContaining('STELLAR_RESOURCE_FEE_CAP_STROOPS is 100') as string,
    });
    expect(await submissions.find(dear.intent)).toMatchObject({ building: null, attempt: null });
  });

  // A8, C11: the estimate is what goes into the transaction, and it has an upper bound.
  it('is the percentile of late fees times the margin, within the cap of its class', async () => {
    const cautious = await fixture.openLayer({ STELLAR_FALLBACK_FEE_STROOPS: '7000' });
    fixture.simnet.setFaults({
      rules: [{ methods: ['getFeeStats'], fault: { kind: 'httpStatus', status: 500 } }],
    });
    const first = request(cautious);
    await cautious.submitter.prepare(first, signal);
    expect((await submissions.find(first.intent))?.attempt?.feeBid).toBe('7000');
    // Surge pricing charges what the ledger's last place costs: that is what the figures then show.
    surge(7_000);
    expect(await fixture.withLedgers(() => submit(cautious, first))).toMatchObject({ kind: 'success' });

    const informed = await fixture.openLayer({
      STELLAR_FEE_PERCENTILE: 'max',
      STELLAR_FEE_MARGIN: '1.5',
      STELLAR_URGENT_FEE_PERCENTILE: 'max',
      STELLAR_URGENT_FEE_CAP_STROOPS: '9000',
    });
    const standard = request(informed);
    await informed.submitter.prepare(standard, signal);
    expect((await submissions.find(standard.intent))?.attempt?.feeBid).toBe('10500');
    await fixture.withLedgers(() => submit(informed, standard));

    const urgent = request(informed, { feeClass: 'urgent' });
    await informed.submitter.prepare(urgent, signal);
    expect((await submissions.find(urgent.intent))?.attempt?.feeBid).toBe('9000');
    expect(await fixture.withLedgers(() => submit(informed, urgent))).toMatchObject({ kind: 'success' });
  });

  // B19, C.6: dropped after four ledgers, the same transaction goes out again in a fee bump.
  it('is raised by a fee bump when ledgers pass it over, and both hashes find it', async () => {
    const metrics = recordingMetrics();
    const layer = await fixture.openLayer({ STELLAR_FEE_PERCENTILE: 'p10' }, { metrics });
    surge(60_000);
    const wanted = request(layer);
    const prepared = await layer.submitter.prepare(wanted, signal);
    await layer.submitter.send(wanted, signal);

    const outcome = await fixture.withLedgers(() =>
      layer.submitter.confirm(wanted, { timeoutMs: 10_000, signal }),
    );

    if (outcome.kind !== 'success' || prepared.kind !== 'prepared') throw new Error(outcome.kind);
    const landed = transaction(prepared.hash);
    expect(landed).toMatchObject({ innerHash: prepared.hash, feeSource: layer.oracle.publicKey });
    expect(outcome.feeChargedStroops).toBe(BigInt(landed!.feeCharged));
    expect([landed!.hash, landed!.innerHash]).toContain(outcome.hash);
    const ours = fixture.simnet.observer.transactions().filter((one) => one.sequence === landed!.sequence);
    expect(ours).toHaveLength(1);
    expect(metrics.counted('stellar_fee_bumps_total')).toBeGreaterThan(0);
    expect(metrics.observed('stellar_fee_charged_stroops')).toEqual([Number(landed!.feeCharged)]);
    expect(metrics.observed('stellar_inclusion_ledgers')).toHaveLength(1);
    expect(metrics.counted('stellar_submissions_total')).toBe(1);
  });

  it('replaces a queued transaction by ten times the bid where it is impatient', async () => {
    const layer = await fixture.openLayer({ STELLAR_BUMP_AFTER_LEDGERS: '1', STELLAR_FEE_PERCENTILE: 'p10' });
    const probe = request(layer);
    await layer.submitter.prepare(probe, signal);
    const bid = BigInt((await submissions.find(probe.intent))!.attempt!.feeBid);
    surge(Number(bid) * 10);
    const { dropped } = fixture.simnet.observer.stats();
    await layer.submitter.send(probe, signal);
    fixture.simnet.closeLedger();

    await layer.submitter.confirm(probe, { timeoutMs: 30, signal });
    expect((await submissions.find(probe.intent))!.attempt!.bumps[0]).toMatchObject({
      feeBid: (bid * 10n).toString(),
    });
    fixture.simnet.closeLedger();

    expect(await layer.submitter.confirm(probe, { timeoutMs: 10_000, signal })).toMatchObject({
      kind: 'success',
    });
    // It took the place of the queued one: neither was dropped, and no bid was refused.
    expect(fixture.simnet.observer.stats()).toMatchObject({ dropped, rejectedByCode: {} });
  });

  it('never passes the cap: the transaction expires instead, and nothing of it lands later', async () => {
    const layer = await fixture.openLayer({
      STELLAR_FEE_PERCENTILE: 'p10',
      STELLAR_FEE_CAP_STROOPS: '20000',
      STELLAR_BUMP_AFTER_LEDGERS: '5',
    });
    surge(5_000_000);
    const wanted = request(layer);
    const prepared = await layer.submitter.prepare(wanted, signal);
    await layer.submitter.send(wanted, signal);
    fixture.simnet.closeLedgers(6);
    await layer.submitter.confirm(wanted, { timeoutMs: 300, signal });
    const attempt = (await submissions.find(wanted.intent))!.attempt!;
    expect(attempt.bumps.every((bump) => BigInt(bump.feeBid) <= 20_000n)).toBe(true);
    expect(attempt.bumps.length).toBeGreaterThan(0);

    fixture.simnet.advanceClock(30_000);
    const outcome = await fixture.withLedgers(() =>
      layer.submitter.confirm(wanted, { timeoutMs: 10_000, signal }),
    );
    expect(outcome).toMatchObject({ kind: 'expired' });
    fixture.simnet.setFaults({});
    fixture.simnet.closeLedgers(15);
    if (prepared.kind !== 'prepared') throw new Error(prepared.kind);
    expect(transaction(prepared.hash)).toBeUndefined();
  });

  it('is paid by the oracle account where a configured channel account has nothing left', async () => {
    const channel = Keypair.random();
    // Just its reserve.
    fixture.simnet.fund(channel.publicKey(), 1n);
    const layer = await fixture.openLayer({ STELLAR_CHANNEL_SECRETS: channel.secret() });

    const outcome = await fixture.withLedgers(() => submit(layer, request(layer)));

    if (outcome.kind !== 'success') throw new Error(outcome.kind);
    expect(transaction(outcome.hash)).toMatchObject({
      source: channel.publicKey(),
      feeSource: layer.oracle.publicKey,
    });
  });

  // C.7 row 9, stellar-core#2505: the refusal names the fee that would do.
  it('follows the fee that a node asks for', async () => {
    const layer = await fixture.openLayer();
    const wanted = request(layer);
    await layer.submitter.prepare(wanted, signal);
    fixture.simnet.setFaults({
      rules: [
        { methods: ['sendTransaction'], times: 2, fault: { kind: 'sendError', code: 'txInsufficientFee' } },
      ],
    });
    await layer.submitter.send(wanted, signal);
    expect(
      await fixture.withLedgers(() => layer.submitter.confirm(wanted, { timeoutMs: 10_000, signal })),
    ).toMatchObject({ kind: 'success' });
  });
});
