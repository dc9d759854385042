import {
  deathPoints,
  openRandomnessNetwork,
  untilAll,
  type RandomnessNetwork,
} from '../../support/randomness-network';
import { until } from '../../support/worker-fixture';

const PROCESSES = 4;
const RAFFLES = 200;

const draw = async (network: RandomnessNetwork, count: number) =>
  network.simnet.actions.drawRaffles(
    Array.from({ length: count }, (_, index) => ({ prizeLumens: index % 3 === 0 ? 800 : 50 })),
  );

describe('many processes', () => {
  let network: RandomnessNetwork;
  beforeAll(async () => {
    network = await openRandomnessNetwork({ ledgerMs: 150 });
  });
  afterAll(() => network.close());

  it(`${PROCESSES} of them with 8 lanes each, one of them killed, deliver ${RAFFLES} raffles once each`, async () => {
    const observer = await network.openWorker();
    const options = {
      randomness: {
        QUEUE_MAX_CONCURRENCY: '8',
        QUEUE_HIGH_PRIORITY_RESERVED: '0',
        QUEUE_LEASE_MS: '5000',
        // 200 of these short ledgers pass quickly on a busy machine.
        ORACLE_REQUEST_TIMEOUT_LEDGERS: '0',
      },
      stellar: { STELLAR_CHANNEL_COUNT: '16' },
    };
    const children = Array.from({ length: PROCESSES }, () => network.spawnWorker(options));
    const drawn = await draw(network, RAFFLES);
    await Promise.all(
      drawn.map(({ requestId, raffleId, ledger }) =>
        observer.pipeline.service.submit({
          requestId: String(requestId),
          raffleId,
          source: 'event',
          requestedAtLedger: ledger,
        }),
      ),
    );
    await Promise.all(children.map((child) => child.start()));
    const delivered = () => network.simnet.observer.raffleDeliveries();
    await until('some are delivered', () => delivered().length >= 20, 120_000);
    children[0]!.process.kill('SIGKILL');
    const ids = drawn.map(({ requestId }) => String(requestId));
    const jobs = await untilAll(observer.pipeline, ids, 'confirmed', 200_000);
    expect(delivered()).toHaveLength(RAFFLES);
    expect(new Set(delivered().map(({ raffleId }) => raffleId)).size).toBe(RAFFLES);
    const seeds = new Map(delivered().map(({ requestId, seed }) => [requestId, seed]));
    for (const job of jobs) expect(seeds.get(job.requestId)).toBe(job.randomness!.seed);
    expect(await observer.pipeline.audit.verifyChain()).toMatchObject({ kind: 'intact', rows: 2 * RAFFLES });
    await until(
      'the figures follow',
      async () => (await observer.pipeline.states.getMetrics()).confirmedCount === RAFFLES,
    );
    expect(await observer.pipeline.states.getMetrics()).toMatchObject({
      pendingCount: 0,
      totalFailedCount: 0,
    });
  }, 240_000);
});

describe('kill -9', () => {
  let network: RandomnessNetwork;
  beforeAll(async () => {
    network = await openRandomnessNetwork({ ledgerMs: 60 });
  });
  afterAll(() => network.close());

  it('in each phase costs an attempt and nothing else: the raffle gets its one seed', async () => {
    const heir = await network.openWorker({ randomness: { QUEUE_LEASE_MS: '2500' } });
    const drawn = await draw(network, deathPoints.length);
    const ids = drawn.map(({ requestId }) => String(requestId));
    const children = deathPoints.map((dieAt) =>
      network.spawnWorker({ randomness: { QUEUE_LEASE_MS: '2500', QUEUE_MAX_CONCURRENCY: '1' }, dieAt }),
    );
    for (const [index, { requestId, raffleId }] of drawn.entries()) {
      // There is always a fresh job to die over; one that an earlier child died over may come first.
      await heir.pipeline.service.submit({ requestId: String(requestId), raffleId, source: 'event' });
      await children[index]!.start();
      expect(await children[index]!.died).toBe('SIGKILL');
    }
    await heir.pool.start();
    const jobs = await untilAll(heir.pipeline, ids, 'confirmed', 60_000);
    const delivered = network.simnet.observer.raffleDeliveries();
    expect(delivered.map(({ requestId }) => requestId).sort()).toEqual([...ids].sort());
    for (const job of jobs) {
      expect(delivered.find(({ requestId }) => requestId === job.requestId)).toMatchObject({
        seed: job.randomness!.seed,
        txHash: job.txHash,
      });
      expect(job.errors.map(({ code }) => code)).toEqual(job.errors.map(() => 'WORKER_DIED'));
    }
    const deaths = jobs.reduce((sum, { errors }) => sum + errors.length, 0);
    expect(deaths).toBeGreaterThanOrEqual(deathPoints.length);
    expect(await heir.pipeline.audit.verifyChain()).toMatchObject({
      kind: 'intact',
      rows: 2 * deathPoints.length,
    });
  }, 120_000);
});
