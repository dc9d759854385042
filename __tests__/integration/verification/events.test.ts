import { randomUUID } from 'node:crypto';
import type { ContractEvent, EventHandler, EventOutcome } from '../../../src/ingestion/event-handler';
import { silentLogger } from '../../../src/platform/logger';
import { type ContractValue, contractValue } from '../../../src/stellar/contract-value';
import { verificationHandler } from '../../../src/verification/verification.handler';
import { notFollowing } from '../../support/ingestion-fixture';
import { withEffects } from '../../support/verification-effects';
import { provenanceId } from '../../support/verification-chain';
import { putSample } from '../../support/verification-gateway';
import {
  attempt,
  claim,
  oracleId,
  runOnce,
  verificationFixture,
  type VerificationFixture,
} from '../../support/verification-fixture';

describe('contract events', () => {
  let fixture: VerificationFixture;
  let ledger = 5000;

  beforeAll(async () => {
    fixture = await verificationFixture();
  });
  afterEach(() => fixture.clear());
  afterAll(() => fixture.close());

  function eventOf(
    fields: Pick<ContractEvent, 'contractId' | 'topics' | 'value'> & Partial<ContractEvent>,
  ): ContractEvent {
    ledger += 1;
    const transactionHash = fields.transactionHash ?? 'ee'.repeat(32);
    return {
      id: `${ledger}-1`,
      identity: `${ledger}:1:0`,
      ledger,
      ledgerClosedAt: new Date(),
      raw: {
        id: `${ledger}-1`,
        type: 'contract',
        ledger,
        ledgerClosedAt: '',
        contractId: fields.contractId,
        txHash: transactionHash,
        topic: [],
        value: '',
      },
      ...fields,
      transactionHash,
    };
  }

  const handlerNamed = (name: string): EventHandler =>
    fixture.pipeline.eventHandlers.find((handler) => handler.name === name)!;

  async function deliver(name: string, event: ContractEvent): Promise<EventOutcome> {
    const outcomes = await handlerNamed(name).handle([event], {
      signal: new AbortController().signal,
      logger: silentLogger(),
      attempt: 1,
      maxAttempts: 3,
      following: notFollowing,
    });
    return outcomes?.get(event.id) ?? { kind: 'handled' };
  }

  describe('verification_requested', () => {
    const requested = (fields: Record<string, ContractValue>) =>
      eventOf({
        contractId: oracleId,
        topics: [contractValue.symbol('verification_requested'), contractValue.u64(7n)],
        value: contractValue.struct(fields),
      });
    const wellFormed = async () => {
      const sample = await putSample(fixture.gateway, { creator: fixture.requester });
      return {
        ...sample,
        event: requested({
          manifest_cid: contractValue.string(sample.manifestCid),
          media_cid: contractValue.string(sample.mediaCid),
          requester: contractValue.address(fixture.requester),
        }),
      };
    };

    it('listens to the oracle contract only', () => {
      expect(handlerNamed('verification-intake')).toMatchObject({
        topics: ['verification_requested'],
        contracts: [oracleId],
      });
    });

    it('becomes one request, however often it is delivered', async () => {
      const { event, manifestHash } = await wellFormed();
      await Promise.all(Array.from({ length: 8 }, () => deliver('verification-intake', event)));
      const { jobs } = await fixture.service.listJobs(fixture.requester, 100, undefined);
      expect(jobs).toHaveLength(1);
      expect(await runOnce(fixture)).toMatchObject({ kind: 'completed', patch: { outcome: 'minted' } });
      expect(fixture.chain.certificates.has(manifestHash)).toBe(true);
      await deliver('verification-intake', event);
      expect((await fixture.queue.claim({ workerId: 'w' as never, lane: 0 })).kind).toBe('empty');
    });

    it('is told apart from another event with the same fields', async () => {
      const { event } = await wellFormed();
      await deliver('verification-intake', event);
      await deliver('verification-intake', { ...event, identity: '9:9:9' });
      const { jobs } = await fixture.service.listJobs(fixture.requester, 100, undefined);
      expect(jobs).toHaveLength(2);
    });

    it.each([
      ['no data', {}],
      [
        'a CID that is none',
        { manifest_cid: contractValue.string('x'), media_cid: contractValue.string('y') },
      ],
      ['a field of another type', { manifest_cid: contractValue.u32(1) }],
    ])('is refused for good with %s', async (_what, fields) => {
      await expect(deliver('verification-intake', requested(fields))).rejects.toMatchObject({
        code: 'MALFORMED_CONTRACT_EVENT',
        kind: 'permanent',
      });
    });
  });

  describe('certificate_minted', () => {
    const minted = (
      { manifestHash }: { manifestHash: string },
      fields: { id?: bigint; owner?: string; transactionHash?: string; closedAt?: Date } = {},
    ) => {
      const certificate = fixture.chain.certificates.get(manifestHash);
      return eventOf({
        contractId: provenanceId,
        topics: [
          contractValue.symbol('certificate_minted'),
          contractValue.address(fields.owner ?? fixture.requester),
          contractValue.u64(fields.id ?? certificate?.id ?? 99n),
          contractValue.string(manifestHash),
        ],
        value: contractValue.struct({}),
        transactionHash: fields.transactionHash ?? certificate?.transactionHash ?? 'dd'.repeat(32),
        ledgerClosedAt: fields.closedAt ?? new Date(),
      });
    };

    /** A worker that has sent its mint, which landed, and died before it heard of that. */
    async function mintedButUnheard() {
      const made = await fixture.submit();
      const handler = verificationHandler(
        withEffects(fixture.deps, {
          after: ({ name }) => {
            if (name === 'submitter.confirm') throw new Error('killed');
          },
        }),
      );
      await attempt(handler, await claim(fixture.queue, 'doomed'));
      expect(await fixture.jobOf(made.jobId)).toMatchObject({ status: 'minting' });
      return made;
    }

    it('completes the job, and the request follows without another transaction', async () => {
      const made = await mintedButUnheard();
      const event = minted(made);
      expect(await deliver('verification-completion', event)).toEqual({ kind: 'handled' });
      const job = await fixture.jobOf(made.jobId);
      expect(job).toMatchObject({ status: 'completed', certificateId: '1' });
      expect(job.timeline.at(-1)).toMatchObject({ stage: 'completed', actor: 'oracle' });

      await fixture.expireLease(made.requestId);
      expect(await runOnce(fixture, 'successor')).toMatchObject({
        kind: 'completed',
        patch: { outcome: 'minted', certificateId: '1' },
      });
      expect(await deliver('verification-completion', event)).toEqual({ kind: 'handled' });
      expect(await fixture.jobOf(made.jobId)).toEqual(job);
      expect(fixture.chain.signed).toHaveLength(1);
    });

    it('knows its own certificate when a fee bump landed under another hash', async () => {
      const made = await mintedButUnheard();
      await deliver('verification-completion', minted(made, { transactionHash: 'bb'.repeat(32) }));
      expect(await fixture.jobOf(made.jobId)).toMatchObject({ status: 'completed' });
    });

    it('is kept while its job is not minting yet, and completes it afterwards', async () => {
      const made = await fixture.submit();
      const early = minted(made, { id: 1n });
      expect(await deliver('verification-completion', early)).toMatchObject({ kind: 'postponed' });
      await runOnce(fixture);
      expect(await deliver('verification-completion', early)).toEqual({ kind: 'handled' });
      expect(await fixture.jobOf(made.jobId)).toMatchObject({ status: 'completed', certificateId: '1' });
    });

    it('does not touch the job of another owner, or a job whose certificate it is not', async () => {
      const made = await mintedButUnheard();
      const stranger = 'GAAZI4TCR3TY5OJHCTJC2A4QSY6CJWJH5IAJTGKIN2ER7LBNVKOCCWN7';
      expect(await deliver('verification-completion', minted(made, { owner: stranger }))).toMatchObject({
        kind: 'postponed',
      });
      fixture.chain.certificates.get(made.manifestHash)!.attestationHash = 'aa'.repeat(32);
      const foreign = minted(made, { transactionHash: 'cc'.repeat(32) });
      expect(await deliver('verification-completion', foreign)).toMatchObject({ kind: 'postponed' });
      expect(await fixture.jobOf(made.jobId)).toMatchObject({ status: 'minting' });
    });

    it('is let go when no job has claimed it for long', async () => {
      const old = minted({ manifestHash: 'ab'.repeat(32) }, { closedAt: new Date(Date.now() - 3_600_000) });
      expect(await deliver('verification-completion', old)).toEqual({ kind: 'handled' });
    });

    it('advances a job once, whether the event or the worker comes first', async () => {
      for (let round = 0; round < 5; round += 1) {
        const made = await mintedButUnheard();
        await fixture.expireLease(made.requestId);
        const [outcome] = await Promise.all([
          runOnce(fixture, `successor ${randomUUID()}`),
          deliver('verification-completion', minted(made)),
        ]);
        expect(outcome).toMatchObject({ kind: 'completed', patch: { outcome: 'minted' } });
        const { timeline, status } = await fixture.jobOf(made.jobId);
        expect([status, timeline.filter(({ stage }) => stage === 'completed').length]).toEqual([
          'completed',
          1,
        ]);
      }
    });

    it.each([
      ['no topics', []],
      [
        'an id of another type',
        [contractValue.address(provenanceId), contractValue.u32(1), contractValue.string('')],
      ],
    ])('is refused for good with %s', async (_what, topics) => {
      const event = eventOf({
        contractId: provenanceId,
        topics: [contractValue.symbol('certificate_minted'), ...topics],
        value: contractValue.struct({}),
      });
      await expect(deliver('verification-completion', event)).rejects.toMatchObject({
        code: 'MALFORMED_CONTRACT_EVENT',
      });
    });
  });
});
