import { createHash } from 'node:crypto';
import { StrKey } from '@stellar/stellar-sdk';
import type { ContractEvent } from '../../../src/ingestion/event-handler';
import { silentLogger } from '../../../src/platform/logger';
import { toVal } from '../../../src/simnet/scval';
import { contractValue } from '../../../src/stellar/contract-value';
import type { IntentId, SubmissionRequest } from '../../../src/stellar/submission';
import { notFollowing } from '../../support/ingestion-fixture';
import { neverAborted, submit } from '../../support/stellar-fixture';
import { until } from '../../support/worker-fixture';
import {
  openRandomnessNetwork,
  untilAll,
  type NetworkWorker,
  type RandomnessNetwork,
} from '../../support/randomness-network';

let network: RandomnessNetwork;
// Generous: beside other suites on a busy machine, calls and ledgers take their time.
jest.setTimeout(90_000);

beforeAll(async () => {
  network = await openRandomnessNetwork({ ledgerMs: 60, endpoints: 2 });
});
afterAll(() => network.close());

const deliveriesOf = (contractId: string) =>
  network.simnet.observer.raffleDeliveries().filter((delivery) => delivery.contractId === contractId);

describe('receive_randomness', () => {
  let worker: NetworkWorker;
  beforeAll(async () => {
    worker = await network.openWorker({
      randomness: { QUEUE_MAX_CONCURRENCY: '8' },
      stellar: { STELLAR_RPC_TIMEOUT_MS: '800' },
    });
    await worker.pool.start();
  });

  it('is what the contract has', async () => {
    const { contract } = worker.pipeline;
    expect(await contract.checkInterface(network.simnet.contracts.raffle, neverAborted())).toEqual({
      kind: 'present',
    });
    expect(
      await contract.checkInterface(network.simnet.contracts.raffleInstance, neverAborted()),
    ).toMatchObject({
      kind: 'absent',
    });
    // That of another network, or of one that was never deployed.
    expect(
      await contract.checkInterface(StrKey.encodeContract(Buffer.alloc(32, 77)), neverAborted()),
    ).toMatchObject({ kind: 'no_contract' });
  });

  it('delivers small and large raffles, each once, with proofs that hold, through an RPC that fails a fifth of its calls', async () => {
    network.simnet.setFaults({ rate: 0.2, seed: 11, holdMs: 900 });
    const drawn = await network.simnet.actions.drawRaffles(
      Array.from({ length: 12 }, (_, index) => ({
        prizeLumens: index % 2 === 0 ? 100 : 700,
        highPriority: index === 5,
      })),
    );
    for (const { raffleId, requestId, ledger } of drawn) {
      await worker.pipeline.service.submit({
        requestId: String(requestId),
        raffleId,
        source: 'event',
        requestedAtLedger: ledger,
      });
    }
    worker.pool.wake();
    const jobs = await untilAll(
      worker.pipeline,
      drawn.map(({ requestId }) => String(requestId)),
      'confirmed',
      80_000,
    );
    network.simnet.setFaults({});
    const delivered = deliveriesOf(network.simnet.contracts.raffle);
    expect(delivered.map(({ raffleId }) => raffleId).sort((a, b) => a! - b!)).toEqual(
      drawn.map(({ raffleId }) => raffleId),
    );
    for (const job of jobs) {
      const onChain = delivered.find(({ raffleId }) => raffleId === job.raffleId)!;
      expect(job.randomness).toMatchObject({
        seed: onChain.seed,
        method: onChain.raffleId! % 2 === 1 ? 'PRNG' : 'VRF',
      });
      expect(job).toMatchObject({ txHash: onChain.txHash, ledger: onChain.ledger });
      expect(
        await worker.pipeline.service.verify({
          requestId: job.requestId,
          proof: job.randomness!.proof,
          seed: onChain.seed,
        }),
      ).toMatchObject({ valid: true, method: job.randomness!.method });
    }
    expect(await worker.pipeline.audit.verifyChain()).toMatchObject({ kind: 'intact', rows: 24 });
  });

  it('is refused the second time, by the contract’s own code', async () => {
    const [drawn] = await network.simnet.actions.drawRaffles([{ prizeLumens: 10 }]);
    const id = String(drawn!.requestId);
    await worker.pipeline.service.submit({ requestId: id, raffleId: drawn!.raffleId, source: 'event' });
    const [job] = await untilAll(worker.pipeline, [id], 'confirmed');
    const { contract } = worker.pipeline;
    const again: SubmissionRequest = {
      intent: 'a second one' as IntentId,
      epoch: 1,
      call: await contract.deliveryCall(job!, job!.randomness!, worker.stellar.oracle),
      feeClass: 'standard',
      alreadyDoneCodes: [],
      findEvidence: () => Promise.resolve(null),
    };
    expect(await submit(worker.stellar, again)).toMatchObject({ kind: 'rejected', contractCode: 61 });
  });

  it('is not sent to a cancelled raffle', async () => {
    const [drawn] = await network.simnet.actions.drawRaffles([{ prizeLumens: 10 }]);
    await network.simnet.actions.cancelRaffle(drawn!.raffleId);
    const id = String(drawn!.requestId);
    const before = network.simnet.observer.stats().accepted;
    await worker.pipeline.service.submit({ requestId: id, raffleId: drawn!.raffleId, source: 'event' });
    const [job] = await untilAll(worker.pipeline, [id], 'failed');
    expect(job).toMatchObject({
      phase: 'done',
      lastError: 'RAFFLE_CANCELLED: Raffle already cancelled',
      txHash: null,
    });
    expect(network.simnet.observer.stats().accepted).toBe(before);
  });

  it('believes no node that is behind the request', async () => {
    const [drawn] = await network.simnet.actions.drawRaffles([{ prizeLumens: 50 }]);
    const id = String(drawn!.requestId);
    // "No such raffle", says the node of the time before.
    network.simnet.setFaults({ rules: [{ fault: { kind: 'lag', ledgers: 3 } }] });
    try {
      await worker.pipeline.service.submit({
        requestId: id,
        raffleId: drawn!.raffleId,
        source: 'event',
        requestedAtLedger: drawn!.ledger,
      });
      worker.pool.wake();
      const [job] = await untilAll(worker.pipeline, [id], 'confirmed');
      expect(job!.errors.filter(({ retryable }) => !retryable)).toEqual([]);
    } finally {
      network.simnet.setFaults({});
    }
  });

  it('opens what it committed to when the raffle was created', async () => {
    const committing = await network.openWorker({ randomness: { COMMIT_REVEAL_THRESHOLD_XLM: '1000' } });
    const { actions, contracts } = network.simnet;
    const prize = toVal.i128(2000n * 10_000_000n);
    const { returned, txHash, ledger } = await actions.call(contracts.raffle, 'create_raffle', [prize]);
    const raffleId = returned.u32();
    const handler = committing.pipeline.eventHandlers.find(({ name }) => name === 'raffle-created')!;
    const created = {
      id: 'created',
      contractId: contracts.raffle,
      transactionHash: txHash,
      ledger,
      value: contractValue.struct({
        raffle_id: contractValue.u32(raffleId),
        prize_amount: contractValue.i128(2000n * 10_000_000n),
      }),
    } as unknown as ContractEvent;
    const context = {
      signal: neverAborted(),
      logger: silentLogger(),
      attempt: 1,
      maxAttempts: 3,
      following: notFollowing,
    };
    // Delivered twice, as after a crash: one opening, one commitment.
    await handler.handle([created], context);
    await handler.handle([created], context);
    const { contract } = committing.pipeline;
    const view = await contract.view(
      { contractId: contracts.raffle, contractRequestId: '', raffleId },
      neverAborted(),
    );
    expect(view.commitment).toMatch(/^[0-9a-f]{64}$/);

    const drawn = await actions.call(contracts.raffle, 'trigger_draw', [
      toVal.u32(raffleId),
      toVal.bool(false),
    ]);
    const id = String(drawn.returned.u32());
    await worker.pipeline.service.submit({ requestId: id, raffleId, source: 'event' });
    const [job] = await untilAll(worker.pipeline, [id], 'confirmed');
    const opened = Buffer.from(job!.randomness!.proof, 'hex');
    expect(job!.randomness!.method).toBe('COMMIT_REVEAL');
    expect(createHash('sha256').update(opened).digest('hex')).toBe(view.commitment);
    // Anyone can check the reveal, by what the raffle held before its draw.
    const { proof, seed } = job!.randomness!;
    const verify = (claim: object): Promise<unknown> =>
      worker.pipeline.service.verify({ requestId: id, raffleId, proof, seed, ...claim });
    const verdict = {
      valid: true,
      method: 'COMMIT_REVEAL',
      commitment: view.commitment,
      seed,
      commitmentFrom: 'here',
    };
    expect(await verify({})).toEqual(verdict);
    expect(await verify({ commitment: view.commitment })).toEqual(verdict);
    for (const wrong of [
      { commitment: '0'.repeat(64) },
      { seed: '0'.repeat(64) },
      { raffleId: raffleId + 1, commitment: view.commitment },
      { proof: proof.replace(/^../, (byte) => (byte === '00' ? '01' : '00')) },
    ]) {
      expect(await verify(wrong)).toMatchObject({ valid: false });
    }
    // Elsewhere only the raffle itself knows of it; a commitment of the caller's own making changes nothing.
    await worker.connection.collection('randomnessCommitments').deleteOne({ raffleId });
    expect(await verify({})).toEqual({ ...verdict, commitmentFrom: 'chain' });
    const forged = Buffer.alloc(48, 1);
    const forgedClaim = {
      proof: forged.toString('hex'),
      commitment: createHash('sha256').update(forged).digest('hex'),
      seed: undefined,
    };
    expect(await verify(forgedClaim)).toEqual({ valid: false, commitmentFrom: 'chain' });
    expect(await verify({ ...forgedClaim, raffleId: 99_999 })).toMatchObject({
      valid: true,
      commitmentFrom: 'caller',
    });
    expect(deliveriesOf(contracts.raffle).find((delivery) => delivery.raffleId === raffleId)).toMatchObject({
      seed: job!.randomness!.seed,
      txHash: job!.txHash,
    });
  });

  it('signs messages bound to network and contract when told to', async () => {
    const v2 = await network.openWorker({ randomness: { ORACLE_MESSAGE_VERSION: '2' } });
    await worker.pool.stop();
    const [drawn] = await network.simnet.actions.drawRaffles([{ prizeLumens: 900 }]);
    const id = String(drawn!.requestId);
    await v2.pipeline.service.submit({ requestId: id, raffleId: drawn!.raffleId, source: 'event' });
    await v2.pool.start();
    const [job] = await untilAll(v2.pipeline, [id], 'confirmed');
    await v2.pool.stop();
    expect(job?.randomness).toMatchObject({ method: 'VRF', messageVersion: 2 });
    expect(await v2.pipeline.service.verify({ requestId: id, proof: job!.randomness!.proof })).toMatchObject({
      valid: true,
      messageVersion: 2,
    });
  });
});

describe('provide_randomness', () => {
  let worker: NetworkWorker;
  beforeAll(async () => {
    worker = await network.openWorker({
      randomness: {
        RAFFLE_CONTRACT_INTERFACE: 'provide_randomness',
        RAFFLE_CONTRACT_ID: network.simnet.contracts.raffleInstance,
      },
      stellar: { STELLAR_RPC_TIMEOUT_MS: '800' },
    });
    await worker.pool.start();
  });

  async function drawn(
    options: Parameters<RandomnessNetwork['simnet']['actions']['deployRaffleInstance']>[0] = {},
  ) {
    const contractId = network.simnet.actions.deployRaffleInstance(options);
    const { requestId, ledger } = await network.simnet.actions.drawInstance(contractId);
    return { contractId, requestId: requestId.toString(), ledger };
  }
  const submitted = async ({
    contractId,
    requestId,
    ledger,
  }: Awaited<ReturnType<typeof drawn>>): Promise<string> => {
    const { requestId: id } = await worker.pipeline.service.submit({
      requestId,
      raffleId: null,
      contractId,
      source: 'event',
      requestedAtLedger: ledger,
    });
    worker.pool.wake();
    return id;
  };

  it('delivers to raffles that are contracts of their own, each once, through an RPC that fails a fifth of its calls', async () => {
    // Beside the fifth, enough in a row that no other endpoint makes up for it: jobs get to feel it.
    const rules = [
      { methods: ['simulateTransaction'], times: 20, fault: { kind: 'httpStatus', status: 503 } as const },
      { methods: ['sendTransaction'], times: 6, fault: { kind: 'dropReply' } as const },
    ];
    network.simnet.setFaults({ rate: 0.2, seed: 5, holdMs: 900, rules });
    const raffles = await Promise.all([drawn(), drawn({ prizeLumens: 5 }), drawn()]);
    const ids = await Promise.all(raffles.map(submitted));
    const jobs = await untilAll(worker.pipeline, ids, 'confirmed', 60_000);
    network.simnet.setFaults({});
    expect(jobs.flatMap(({ errors }) => errors)).not.toEqual([]);
    for (const job of jobs) {
      const delivered = deliveriesOf(job.contractId);
      expect(delivered).toMatchObject([{ requestId: job.contractRequestId, txHash: job.txHash }]);
      // The contract's 64-bit seed is the head of ours, which follows from a proof of its own.
      const seed = createHash('sha256').update(Buffer.from(job.randomness!.proof, 'hex')).digest();
      expect(delivered[0]!.seed).toBe(seed.readBigUInt64BE().toString());
    }
  });

  it('waits while it is too early', async () => {
    const raffle = await drawn({ minDelayLedgers: 5000 });
    const { requestId: id } = await worker.pipeline.service.submit({
      requestId: raffle.requestId,
      raffleId: null,
      contractId: raffle.contractId,
      source: 'event',
    });
    worker.pool.wake();
    await until('a try that came too early', async () => {
      const job = await worker.pipeline.rescue.find(id);
      return job?.transitions.at(-1)?.reason?.includes('contract error 64') === true && job.attempts === 0;
    });
    network.simnet.closeLedgers(5000);
    const [job] = await untilAll(worker.pipeline, [id], 'confirmed');
    expect(job!.ledger).toBeGreaterThanOrEqual(raffle.ledger + 5000);
  });

  it('sends nothing after 200 ledgers, and the raffle falls back', async () => {
    const raffle = await drawn();
    network.simnet.closeLedgers(200);
    // Older than any ledger that the worker may remember from before this test closed hundreds by hand.
    const old = { ...raffle, ledger: 1 };
    const [job] = await untilAll(worker.pipeline, [await submitted(old)], 'failed');
    expect(job!.errors.at(-1)).toMatchObject({ code: 'REQUEST_TOO_LATE' });
    await network.simnet.actions.triggerFallback(raffle.contractId, false);
    expect(deliveriesOf(raffle.contractId)).toEqual([]);
  });

  it('ends a job whose raffle fell back meanwhile, without a transaction', async () => {
    const raffle = await drawn();
    network.simnet.closeLedgers(200);
    await network.simnet.actions.triggerFallback(raffle.contractId, false);
    const [job] = await untilAll(worker.pipeline, [await submitted(raffle)], 'failed');
    expect(job).toMatchObject({
      phase: 'done',
      txHash: null,
      lastError: 'RAFFLE_FINALIZED: Raffle already finalized',
    });
  });
});
