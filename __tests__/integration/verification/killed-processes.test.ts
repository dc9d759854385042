import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { randomUUID } from 'node:crypto';
import { Keypair } from '@stellar/stellar-sdk';
import { type Simnet, startSimnet } from '../../../src/simnet';
import { openTestDatabase, type TestDatabase } from '../../support/database';
import { sha256 } from '../../support/verification-gateway';
import { type OpenWorker, openWorker, workerEnvironment } from '../../support/verification-worker';

const LEASE_MS = 3000;
/** The three from which a transaction may be on its way; crash-points.test.ts has the rest, without the price of a process each. */
const crashPoints = ['submitter.prepare:after', 'submitter.send:after', 'submitter.confirm:after'];

describe('verification on a network, with workers that are killed', () => {
  let simnet: Simnet;
  let database: TestDatabase;
  let environment: Record<string, string>;
  let survivors: OpenWorker[] = [];
  let doomed: ChildProcess[] = [];

  beforeAll(async () => {
    [simnet, database] = await Promise.all([startSimnet({ ledgerMs: 100 }), openTestDatabase()]);
    environment = workerEnvironment(simnet.facts(), database.uri);
  });
  afterAll(async () => {
    for (const child of doomed) child.kill('SIGKILL');
    await Promise.all(survivors.map(({ pool }) => pool.stop()));
    await Promise.all(survivors.map(({ stellar }) => stellar.close()));
    await Promise.all([simnet.stop(), database.close()]);
  });

  const open = async (): Promise<OpenWorker> => {
    const worker = await openWorker({
      connection: database.connection,
      environment,
      lanes: 3,
      leaseMs: LEASE_MS,
    });
    survivors = [...survivors, worker];
    return worker;
  };

  async function submit({ pipeline }: OpenWorker) {
    const requester = Keypair.random().publicKey();
    const media = `media ${randomUUID()}`;
    const manifest = JSON.stringify({ contentHash: sha256(media), creator: requester });
    const submitted = await pipeline.service.submitByKey(
      {
        mediaCid: await simnet.gateway.put(Buffer.from(media)),
        manifestCid: await simnet.gateway.put(Buffer.from(manifest), { codec: 'dag-pb-v0' }),
        requester,
      },
      undefined,
    );
    return { ...submitted, requester, manifestHash: sha256(manifest) };
  }

  it('mints each request once, wherever its first worker was killed', async () => {
    const survivor = await open();
    const made = await Promise.all(crashPoints.map(() => submit(survivor)));
    doomed = crashPoints.map((point) =>
      spawn(process.execPath, ['--import', 'tsx', '__tests__/support/verification-doomed-process.ts'], {
        env: {
          PATH: process.env['PATH'],
          CRASH_AT: point,
          LEASE_MS: String(LEASE_MS),
          WORKER_ENVIRONMENT: JSON.stringify(environment),
        },
        stdio: ['ignore', 'ignore', 'inherit'],
      }),
    );
    const ends = await Promise.all(doomed.map((child) => once(child, 'exit')));
    expect(ends.map(([, signal]) => signal as string)).toEqual(crashPoints.map(() => 'SIGKILL'));

    const second = await open();
    let open_ = made.length;
    const finished = new Promise<void>((resolve) => {
      for (const { pool } of [survivor, second]) {
        pool.events.on('completed', () => {
          open_ -= 1;
          if (open_ === 0) resolve();
        });
      }
    });
    await Promise.all([survivor.pool.start(), second.pool.start()]);
    await finished;

    const certificates = simnet.observer.certificates();
    expect(certificates.map(({ manifestHash }) => manifestHash).sort()).toEqual(
      made.map(({ manifestHash }) => manifestHash).sort(),
    );
    for (const { jobId, requestId, manifestHash, requester } of made) {
      const certificate = certificates.find((minted) => minted.manifestHash === manifestHash)!;
      expect(certificate.owner).toBe(requester);
      expect(await survivor.pipeline.service.findJob(jobId)).toMatchObject({
        status: 'completed',
        certificateId: certificate.certificateId,
        stellarTransactionHash: certificate.txHash,
        teeAttestationHash: certificate.attestationHash,
      });
      expect(await survivor.pipeline.service.findRequest(requestId)).toMatchObject({
        status: 'completed',
        attempts: 2,
        lastError: { code: 'WORKER_DIED' },
      });
    }
    const mints = simnet.observer
      .transactions()
      .filter(({ operations }) => operations.some((op) => op.includes('mint')));
    expect(mints.length).toBeLessThanOrEqual(made.length);
  }, 60_000);
});
