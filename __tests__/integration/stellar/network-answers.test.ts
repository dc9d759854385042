import { SubmissionRepository } from '../../../src/stellar/submissions/submission-repository';
import type { StellarLayer } from '../../../src/stellar/stellar-layer';
import type { IntentId, SubmissionRequest } from '../../../src/stellar/submission';
import type { FaultRuleInput } from '../../../src/simnet';
import {
  mintRequest,
  neverAborted,
  newManifestHash,
  openStellarFixture,
  persist,
  PROVENANCE_DUPLICATE,
  submit,
  type StellarFixture,
} from '../../support/stellar-fixture';

const send = (fault: FaultRuleInput['fault'], times = 1): FaultRuleInput => ({
  methods: ['sendTransaction'],
  times,
  fault,
});

describe("the network's answers to a submission", () => {
  let fixture: StellarFixture;
  let submissions: SubmissionRepository;
  let layer: StellarLayer;
  const signal = neverAborted();

  beforeAll(async () => {
    fixture = await openStellarFixture({ ledgerMs: 0, endpoints: 2 });
    submissions = new SubmissionRepository(fixture.database.connection);
  });
  beforeEach(async () => {
    fixture.simnet.setFaults({});
    layer = await fixture.openLayer();
  });
  afterAll(() => fixture.close());

  const request = (overrides: Partial<SubmissionRequest> = {}, hash = newManifestHash()): SubmissionRequest =>
    mintRequest(fixture.simnet.facts(), layer, hash, overrides);
  const faults = (...rules: FaultRuleInput[]): void => fixture.simnet.setFaults({ rules });
  const stored = (intent: IntentId) => submissions.find(intent);
  const landed = () => fixture.simnet.observer.transactions().length;
  const begin = async (wanted: SubmissionRequest): Promise<void> => {
    await layer.submitter.prepare(wanted, signal);
    await layer.submitter.send(wanted, signal);
  };
  const confirm = (wanted: SubmissionRequest, timeoutMs = 10_000) =>
    layer.submitter.confirm(wanted, { timeoutMs, signal });

  describe('doubt', () => {
    // A7, B17, C.7 row 9: giving up waiting is not the end of the transaction.
    it('a window that ends too early leaves one transaction on its way, which the next claim follows', async () => {
      const wanted = request();
      const before = landed();
      await begin(wanted);
      expect(await confirm(wanted, 100)).toMatchObject({ kind: 'unknown' });

      const { outcome } = await fixture.withLedgers(() => persist(layer, wanted, { firstEpoch: 2 }));

      expect(outcome.kind).toBe('success');
      expect(landed() - before).toBe(1);
    });

    // B17: an outage while looking must not read as "did not land". C.7 row 8: one failed poll neither.
    it('looks that fail say nothing about the transaction', async () => {
      const wanted = request();
      await begin(wanted);
      faults({ methods: ['getTransaction'], fault: { kind: 'httpStatus', status: 503 } });
      fixture.simnet.closeLedger();
      expect(await confirm(wanted, 300)).toMatchObject({ kind: 'unknown' });
      faults();
      expect(await confirm(wanted)).toMatchObject({ kind: 'success' });
    });

    // A10: DUPLICATE means that the node has it, no more.
    it('DUPLICATE is no success', async () => {
      const wanted = request();
      await begin(wanted);
      expect(await layer.submitter.send(wanted, signal)).toMatchObject({ kind: 'sent' });
      expect(fixture.simnet.observer.stats().duplicates).toBeGreaterThan(0);
      expect(await confirm(wanted, 50)).toMatchObject({ kind: 'unknown' });
      expect(await fixture.withLedgers(() => confirm(wanted))).toMatchObject({ kind: 'success' });
    });

    // B17: the hash stays, and the same bytes go out again.
    it('TRY_AGAIN_LATER: the same transaction is sent until it is taken', async () => {
      faults(send({ kind: 'tryAgainLater' }, 3));
      const wanted = request();
      const prepared = await layer.submitter.prepare(wanted, signal);
      await layer.submitter.send(wanted, signal);
      const outcome = await fixture.withLedgers(() => confirm(wanted));
      expect(outcome).toMatchObject({ kind: 'success', hash: (prepared as { hash: string }).hash });
    });

    it('a reply that is lost after the node took the transaction', async () => {
      faults(send({ kind: 'dropReply' }));
      const before = landed();
      const outcome = await fixture.withLedgers(() => submit(layer, request()));
      expect(outcome.kind).toBe('success');
      expect(landed() - before).toBe(1);
    });

    // B16: a network that can't be reached is a reason to come back, not to give up.
    it('no endpoint answers: transient, and nothing stays behind', async () => {
      faults({ fault: { kind: 'dropBefore' } });
      const wanted = request();
      await expect(layer.submitter.prepare(wanted, signal)).rejects.toMatchObject({ kind: 'transient' });
      expect(await stored(wanted.intent)).toMatchObject({ attempt: null, building: null });
    });
  });

  describe('refusals', () => {
    it.each(['txBadAuth', 'txMalformed'] as const)('%s on the first send is final', async (code) => {
      faults(send({ kind: 'sendError', code }));
      const wanted = request();
      expect(await submit(layer, wanted)).toMatchObject({ kind: 'rejected', code });
      expect(await submit(layer, wanted)).toMatchObject({ kind: 'rejected', code });
      // A later claim, such as a replay by an operator, gets a new try.
      const { outcome } = await fixture.withLedgers(() => persist(layer, wanted, { firstEpoch: 2 }));
      expect(outcome.kind).toBe('success');
    });

    it.each(['txInsufficientBalance', 'txInternalError', 'txNoAccount'] as const)(
      '%s may pass: the transaction is sent again',
      async (code) => {
        faults(send({ kind: 'sendError', code }, 2));
        expect(await fixture.withLedgers(() => submit(layer, request()))).toMatchObject({ kind: 'success' });
      },
    );

    // C.7 row 8: built anew without looking, the payment is made twice.
    it('txBadSeq after a lost reply: the transaction that landed is found, and none is built', async () => {
      const wanted = request();
      const before = landed();
      await layer.submitter.prepare(wanted, signal);
      faults(send({ kind: 'dropReply' }));
      await layer.submitter.send(wanted, signal);
      fixture.simnet.closeLedger();
      // Any envelope whose sequence is used up is refused so, ours that landed too.
      faults(send({ kind: 'sendError', code: 'txBadSeq' }));
      expect(await layer.submitter.send(wanted, signal)).toMatchObject({ kind: 'success' });
      expect(landed() - before).toBe(1);
    });

    // C.7 row 10: a sequence that someone else used up.
    it('txBadSeq on the first send: it is dropped at once and built with a fresh sequence', async () => {
      const wanted = request();
      faults(send({ kind: 'sendError', code: 'txBadSeq' }));
      expect(await submit(layer, wanted)).toMatchObject({ kind: 'expired' });
      faults();
      const { outcome } = await fixture.withLedgers(() => persist(layer, wanted));
      expect(outcome.kind).toBe('success');
    });

    it('txBadSeq while an earlier send is in doubt: nothing is built before the end of its validity', async () => {
      const wanted = request();
      await layer.submitter.prepare(wanted, signal);
      faults(send({ kind: 'timeoutBefore', holdMs: 1_500 }), {
        ...send({ kind: 'sendError', code: 'txBadSeq' }, 100),
      });
      await layer.submitter.send(wanted, signal);
      expect(await confirm(wanted, 200)).toMatchObject({ kind: 'unknown' });
      expect((await stored(wanted.intent))?.attempt).not.toBeNull();
      faults();
      expect(await fixture.withLedgers(() => confirm(wanted))).toMatchObject({ kind: 'success' });
    });
  });

  describe('contract errors', () => {
    // B15: our own mint that landed before shows as a duplicate.
    it('"already" in simulation counts when the chain shows the effect', async () => {
      const hash = newManifestHash();
      await fixture.withLedgers(() => submit(layer, request({}, hash)));
      let asked = 0;
      const { findEvidence } = request({}, hash);
      const again = request(
        {
          intent: `again:${hash}` as IntentId,
          // Blind at first, as where the effect lands between the look and the simulation.
          findEvidence: (abort) => ((asked += 1) === 1 ? Promise.resolve(null) : findEvidence(abort)),
        },
        hash,
      );
      expect(await submit(layer, again)).toMatchObject({ kind: 'already_done', evidence: { ours: true } });
    });

    it('"already" without the effect on chain is a refusal', async () => {
      const hash = newManifestHash();
      await fixture.withLedgers(() => submit(layer, request({}, hash)));
      const blind = request(
        { intent: `blind:${hash}` as IntentId, findEvidence: () => Promise.resolve(null) },
        hash,
      );
      expect(await submit(layer, blind)).toMatchObject({
        kind: 'rejected',
        code: 'CONTRACT_REJECTED',
        contractCode: PROVENANCE_DUPLICATE,
      });
    });

    it('"already" in the ledger itself: the one of two racing mints that lost closes as done', async () => {
      const hash = newManifestHash();
      const rival = await fixture.openLayer({ STELLAR_CHANNEL_COUNT: '1' });
      const [one, other] = ['one', 'other'].map((name) =>
        request({ intent: `${name}:${hash}` as IntentId }, hash),
      );
      await fixture.withLedgers(() => rival.submitter.prepare(other!, signal));
      await layer.submitter.prepare(one!, signal);
      await Promise.all([layer.submitter.send(one!, signal), rival.submitter.send(other!, signal)]);
      fixture.simnet.closeLedger();

      const outcomes = await Promise.all([
        confirm(one!),
        rival.submitter.confirm(other!, { timeoutMs: 10_000, signal }),
      ]);

      expect(outcomes.map((outcome) => outcome.kind).sort()).toEqual(['already_done', 'success']);
      const lost = await stored(outcomes[0].kind === 'success' ? other!.intent : one!.intent);
      expect(lost?.settled).toMatchObject({ kind: 'failed', contractCode: PROVENANCE_DUPLICATE });
    });

    it('archived entries are restored first, in a transaction of their own', async () => {
      fixture.simnet.archive(fixture.simnet.contracts.provenance);
      const before = landed();
      const outcome = await fixture.withLedgers(() => submit(layer, request()));
      expect(outcome.kind).toBe('success');
      const operations = fixture.simnet.observer
        .transactions()
        .slice(before)
        .map((one) => one.operations[0]);
      expect(operations).toEqual(['restoreFootprint', 'invokeHostFunction']);
    });

    it('reads give the contract code of a refusal', async () => {
      const call = {
        contractId: fixture.simnet.contracts.provenance,
        functionName: 'get_certificate',
        args: [{ type: 'u64', value: 999_999n } as const],
      };
      await expect(layer.reader.read(call, signal)).rejects.toMatchObject({
        kind: 'rejected',
        details: { contractCode: 2 },
      });
    });
  });

  // B17: the return value moved with protocol 23.
  it.each([3, 4] as const)('reads the return value from result meta v%i', async (version) => {
    faults({ fault: { kind: 'meta', version } });
    expect(await fixture.withLedgers(() => submit(layer, request()))).toMatchObject({
      kind: 'success',
      returnValue: { type: 'u64' },
    });
  });

  describe('nodes that differ', () => {
    // C.7 row 7, #1019: right after a confirmation a lagging node gives the sequence of before.
    it('a lagging node gives no bad sequence, one transaction after another', async () => {
      faults({ endpoints: [0], fault: { kind: 'lag', ledgers: 3 } });
      const before = fixture.simnet.observer.stats().badSequences;
      await fixture.withLedgers(async () => {
        for (let count = 0; count < 4; count += 1) {
          expect(await submit(layer, request())).toMatchObject({ kind: 'success' });
        }
      });
      expect(fixture.simnet.observer.stats().badSequences).toBe(before);
    });

    it('a node of another history is not believed when it has never heard of the transaction', async () => {
      const wanted = request();
      await begin(wanted);
      fixture.simnet.closeLedger();
      fixture.simnet.advanceClock(30_000);
      fixture.simnet.closeLedgers(2);
      faults({ endpoints: [0], fault: { kind: 'otherHistory', ledgerOffset: 5_000 } });
      expect(await confirm(wanted)).toMatchObject({ kind: 'success' });
    });

    // C.2: NOT_FOUND of a node that no longer remembers is no verdict.
    it('a transaction that has aged out of every node is judged by its effect', async () => {
      const hash = newManifestHash();
      const wanted = request({}, hash);
      await begin(wanted);
      fixture.simnet.closeLedger();
      fixture.simnet.advanceClock(30_000);
      fixture.simnet.closeLedgers(6);
      faults({ fault: { kind: 'retention', ledgers: 2 } });
      const blind = { ...wanted, findEvidence: () => Promise.resolve(null) };
      // Its time is over, and there is nothing to show for it.
      expect(await confirm(blind)).toMatchObject({ kind: 'expired' });
      expect(await confirm(wanted)).toMatchObject({ kind: 'already_done', evidence: { ours: true } });
      expect(await submit(layer, { ...wanted, epoch: 2 })).toMatchObject({ kind: 'already_done' });
    });
  });
});
