import { Keypair } from '@stellar/stellar-sdk';
import { startSimnet, type Simnet } from '../../../src/simnet';
import { openTestDatabase, type TestDatabase } from '../../support/database';
import { sha256 } from '../../support/verification-gateway';
import { openWorker, workerEnvironment, type OpenWorker } from '../../support/verification-worker';

const SEEDS = Array.from({ length: 20 }, (_, index) => index + 1);
const REQUESTS = 2;
/** More would keep two cores so busy that calls miss their deadlines for that alone. */
const AT_A_TIME = 10;
const FAULT_RATE = 0.3;
/** How long a silent endpoint keeps quiet; longer than the deadline of a call. */
const HOLD_MS = 1600;

interface Network {
  seed: number;
  simnet: Simnet;
  database: TestDatabase;
  worker: OpenWorker;
}

/**
 * Thirty of a hundred calls to every endpoint fail: before or after they took effect, with silence, cut connections, 429, 5xx.
 * The networks run side by side, each with a seed, a database and two lanes of its own, for most of their time is waiting.
 */
describe('verification on a network that fails every third call', () => {
  const networks: Network[] = [];

  const open = async (seed: number): Promise<Network> => {
    const [simnet, database] = await Promise.all([
      startSimnet({
        seed,
        endpoints: 2,
        ledgerMs: 250,
        faults: { seed, rate: FAULT_RATE, ipfsRate: FAULT_RATE, holdMs: HOLD_MS },
      }),
      openTestDatabase(),
    ]);
    const worker = await openWorker({
      connection: database.connection,
      environment: {
        ...workerEnvironment(simnet.facts(), database.uri),
        STELLAR_CHANNEL_COUNT: '2',
        STELLAR_RPC_TIMEOUT_MS: '1500',
        STELLAR_RPC_COOLDOWN_MS: '200',
        SPV_FETCH_TIMEOUT_MS: '1500',
        MINT_RECHECK_MS: '100',
        VERIFICATION_WORKER_MAX_ATTEMPTS: '20',
        VERIFICATION_WORKER_RETRY_BASE_MS: '50',
        STELLAR_TX_VALIDITY_MS: '10000',
        STELLAR_TX_CONFIRMATION_TIMEOUT_MS: '15000',
      },
      lanes: 2,
      leaseMs: 20_000,
    });
    const network = { seed, simnet, database, worker };
    networks.push(network);
    return network;
  };

  afterAll(async () => {
    await Promise.all(
      networks.map(async ({ simnet, database, worker }) => {
        await worker.pool.stop();
        await worker.stellar.close();
        await simnet.stop();
        await database.close();
      }),
    );
  });

  /** Submits, works until all have ended, and answers with what the ledger and the database say. */
  async function verify({ seed, simnet, worker }: Network) {
    const ended = new Promise<void>((resolve) => {
      let left = REQUESTS;
      const one = (): void => {
        left -= 1;
        if (left === 0) resolve();
      };
      worker.pool.events.on('completed', one);
      worker.pool.events.on('dead_lettered', one);
    });
    const manifests = await Promise.all(
      Array.from({ length: REQUESTS }, async (_, index) => {
        const requester = Keypair.random().publicKey();
        const media = `media ${seed}/${index}`;
        const manifest = JSON.stringify({ contentHash: sha256(media), creator: requester });
        const [mediaCid, manifestCid] = await Promise.all([
          simnet.gateway.put(Buffer.from(media)),
          simnet.gateway.put(Buffer.from(manifest)),
        ]);
        await worker.pipeline.service.submitByKey({ mediaCid, manifestCid, requester }, `${seed}-${index}`);
        return sha256(manifest);
      }),
    );
    await worker.pool.start();
    await ended;
    const { completed, failed } = await worker.pipeline.jobCounts();
    const minted = simnet.observer.certificates().map(({ manifestHash }) => manifestHash);
    return { seed, completed, failed, minted: minted.sort(), wanted: manifests.sort() };
  }

  it('mints each request exactly once and dead-letters none, whatever the seed', async () => {
    const results: Awaited<ReturnType<typeof verify>>[] = [];
    for (let first = 0; first < SEEDS.length; first += AT_A_TIME) {
      const wave = SEEDS.slice(first, first + AT_A_TIME);
      results.push(...(await Promise.all(wave.map(async (seed) => verify(await open(seed))))));
    }
    for (const { seed, completed, failed, minted, wanted } of results) {
      expect({ seed, completed, failed, minted }).toEqual({
        seed,
        completed: REQUESTS,
        failed: 0,
        minted: wanted,
      });
    }
    const faults = networks.map(({ simnet }) =>
      Object.values(simnet.observer.stats().faultsByKind).reduce((sum, count) => sum + count, 0),
    );
    // The network did fail: a run without a fault would prove nothing.
    expect(Math.min(...faults)).toBeGreaterThan(0);
  }, 120_000);
});
