import { Keypair } from '@stellar/stellar-sdk';
import { createConnection } from 'mongoose';
import type { NetworkWorker, RandomnessNetwork } from '../../support/randomness-network';
import { openRandomnessNetwork } from '../../support/randomness-network';
import { type RescueCli, rescueCli } from '../../support/rescue-cli';

const WHO = ['--operator', 'ops', '--reason', 'the queue is down'];
const LATE_MS = 400_000;
let network: RandomnessNetwork;
let worker: NetworkWorker;
let cli: RescueCli;
let raffles: { raffleId: number; requestId: string; ledger: number }[];

beforeAll(async () => {
  network = await openRandomnessNetwork({ ledgerMs: 60 });
  worker = await network.openWorker({ randomness: { ORACLE_REQUEST_TIMEOUT_LEDGERS: '0' } });
  cli = rescueCli(network, { ORACLE_REQUEST_TIMEOUT_LEDGERS: '0' });
  const drawn = await network.simnet.actions.drawRaffles([
    { prizeLumens: 20 },
    { prizeLumens: 30 },
    { prizeLumens: 40 },
    { prizeLumens: 50 },
  ]);
  raffles = drawn.map(({ raffleId, requestId, ledger }) => ({
    raffleId,
    requestId: String(requestId),
    ledger,
  }));
});
afterAll(() => network.close());

const json = (stdout: string): unknown => JSON.parse(stdout);

async function queued(index: number, ageMs = 0): Promise<{ raffle: string; request: string }> {
  const { raffleId, requestId, ledger } = raffles[index]!;
  await worker.pipeline.service.submit({
    requestId,
    raffleId,
    source: 'event',
    requestedAt: new Date(Date.now() - ageMs),
    requestedAtLedger: ledger,
  });
  return { raffle: String(raffleId), request: requestId };
}

describe('force-submit', () => {
  it('previews, finds what is stuck, delivers it and keeps the record', async () => {
    const { raffle, request } = await queued(0, LATE_MS);
    const noOperator = await cli.rescue('force-submit', raffle, request, '--execute');
    const preview = await cli.rescue('force-submit', raffle, request, ...WHO, '--json');
    const stuck = await cli.rescue('list-stuck', '--json');
    expect(noOperator).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('--operator') as string,
    });
    expect(preview.exitCode).toBe(0);
    expect(json(preview.stdout)).toMatchObject({
      action: 'force-submit',
      executed: false,
      plan: {
        method: 'PRNG',
        contractStatus: 'drawing',
        state: 'queued',
        feeClass: 'urgent',
        feeEstimateStroops: expect.stringMatching(/^[1-9]\d{2,}$/) as string,
        feeProblem: null,
        refusal: null,
      },
    });
    expect(stuck.exitCode).toBe(2);
    expect(json(stuck.stdout)).toMatchObject({
      stuck: 1,
      draws: [{ requestId: request, status: 'stuck', contractStatus: 'drawing' }],
    });
    expect(network.simnet.observer.raffleDeliveries()).toEqual([]);

    const done = await cli.rescue('force-submit', raffle, request, ...WHO, '--execute', '--json');
    expect(done.exitCode).toBe(0);
    expect(json(done.stdout)).toMatchObject({
      executed: true,
      result: { kind: 'done', details: { state: 'confirmed' } },
    });
    expect(network.simnet.observer.raffleDeliveries()).toHaveLength(1);

    const again = await cli.rescue('force-submit', raffle, request, ...WHO, '--execute');
    expect(again).toMatchObject({
      exitCode: 3,
      stdout: expect.stringContaining('the raffle is finalized') as string,
    });
  }, 60_000);

  it('shows who pays and who proves, and no key that hides in a URL', async () => {
    const prover = Keypair.random();
    const { oraclePublicKey, rpcUrls } = network.simnet.facts();
    const own = rescueCli(network, {
      ORACLE_SECRET_KEY: prover.secret(),
      SOROBAN_RPC_URLS: rpcUrls.map((url) => `${url}/v1/my-api-key`).join(','),
      STELLAR_CHANNEL_COUNT: '2',
    });
    const { raffleId, requestId } = raffles[1]!;
    const preview = await own.rescue('force-submit', String(raffleId), requestId, ...WHO, '--json');
    expect(json(preview.stdout)).toMatchObject({
      plan: {
        proofKey: prover.publicKey(),
        sourceAccount: oraclePublicKey,
        channelAccounts: [expect.stringMatching(/^G/), expect.stringMatching(/^G/)],
        rpcUrls: rpcUrls.map((url) => new URL(url).origin),
        feeClass: 'urgent',
        jobId: null,
      },
    });
    const forPeople = await own.rescue('force-submit', String(raffleId), requestId, ...WHO);
    for (const { stdout, stderr } of [preview, forPeople])
      expect(stdout + stderr).not.toContain('my-api-key');
  });
});

it('a dead job is listed, goes back to work, is given up, and discarded once its raffle is over', async () => {
  const { raffle, request } = await queued(2);
  const give = ['--operator', 'ops', '--reason', 'nobody plays', '--json'];

  const planned = await cli.rescue('force-fail', request, ...give);
  expect(json(planned.stdout)).toMatchObject({ executed: false, plan: { state: 'queued', refusal: null } });
  const failed = await cli.rescue('force-fail', request, ...give, '--execute');
  expect([failed.exitCode, json(failed.stdout)]).toMatchObject([0, { executed: true }]);
  await worker.pipeline.projector.projectPending();
  expect((await cli.rescue('force-fail', request, ...give, '--execute')).exitCode).toBe(3);

  expect(await jobsOf('list-failed')).toMatchObject({
    jobs: [{ requestId: request, currentState: 'failed' }],
    truncated: false,
  });
  expect(await jobsOf('list-all')).toMatchObject({ total: 2, truncated: false });
  expect(await jobsOf('list-all', '--limit', '1')).toMatchObject({ total: 2, truncated: true });

  // The seed's own form; without --execute it needs nobody's name.
  expect((await cli.rescue('--request-id', request)).exitCode).toBe(0);
  expect((await cli.rescue('--request-id', request, '--execute')).exitCode).toBe(1);
  expect((await cli.rescue('discard', request, ...WHO, '--execute')).exitCode).toBe(3);
  const back = await cli.rescue('--request-id', request, ...WHO, '--execute', '--json');
  expect([back.exitCode, json(back.stdout)]).toMatchObject([0, { action: 're-enqueue', executed: true }]);
  expect((await cli.rescue('re-enqueue', request, ...WHO, '--execute')).exitCode).toBe(3);

  await cli.rescue('force-fail', request, ...give, '--execute');
  await worker.pipeline.projector.projectPending();
  await network.simnet.actions.cancelRaffle(Number(raffle));
  expect(await cli.rescue('re-enqueue', request, ...WHO, '--execute')).toMatchObject({
    exitCode: 3,
    stdout: expect.stringContaining(`"discard ${request}" clears the dead letter`) as string,
  });
  const stuck = await cli.rescue('list-stuck', '--json');
  expect([stuck.exitCode, json(stuck.stdout)]).toMatchObject([
    0,
    { stuck: 0, draws: [{ requestId: request, status: 'failed', nextStep: `discard ${request}` }] },
  ]);
  const gone = await cli.rescue('discard', request, ...WHO, '--execute', '--json');
  expect([gone.exitCode, json(gone.stdout)]).toMatchObject([0, { action: 'discard', executed: true }]);
  expect((await cli.rescue('discard', request, ...WHO, '--execute')).exitCode).toBe(4);
  expect(await jobsOf('list-failed')).toMatchObject({ jobs: [], total: 0 });

  const { logs } = json((await cli.rescue('logs', '--raffle', raffle, '--json')).stdout) as {
    logs: { action: string; result: string }[];
  };
  expect(logs.slice(0, 3)).toMatchObject([
    { action: 'DISCARD', result: 'done', raffleId: Number(raffle), ...who },
    { action: 'RE_ENQUEUE', result: 'refused' },
    { action: 'FORCE_FAIL', result: 'done', jobId: expect.stringMatching(/^[0-9a-f]{24}$/) as string },
  ]);
  expect(json((await cli.rescue('logs', '--limit', '2', '--json')).stdout)).toMatchObject({
    logs: [{ result: 'not_found' }, { action: 'DISCARD' }],
    truncated: true,
  });
}, 60_000);

const who = { operator: 'ops', reason: 'the queue is down' };

async function jobsOf(...args: string[]): Promise<unknown> {
  const ended = await cli.rescue(...args, '--json');
  expect(ended.exitCode).toBe(0);
  return json(ended.stdout);
}

it('a dead job whose raffle waits is stuck, however young', async () => {
  const { request } = await queued(3);
  await cli.rescue('force-fail', request, ...WHO, '--execute');
  const stuck = await cli.rescue('list-stuck');
  expect(stuck.exitCode).toBe(2);
  expect(stuck.stdout).toMatch(new RegExp(`^stuck +${request} .*re-enqueue ${request}$`, 'm'));
  expect(stuck.stdout).toContain('1 draw: 1 stuck.');
});

it('as from a shell: one object on stdout, and the exit code says the rest', async () => {
  expect(await cli.shell('--request-id', 'req-123', '--json')).toMatchObject({
    exitCode: 4,
    stdout: `${JSON.stringify({ error: 'there is no job req-123' })}\n`,
  });
});

it('a trail that was tampered with is told from one that stands', async () => {
  expect(await cli.rescue('verify-audit')).toMatchObject({
    exitCode: 0,
    stdout: expect.stringMatching(/^Intact: \d+ rows/) as string,
  });
  const connection = await createConnection(network.uri).asPromise();
  try {
    await connection
      .collection('randomnessAudit')
      .updateOne({ _id: 2 as never }, { $set: { raffleId: 4711 } });
  } finally {
    await connection.close();
  }
  const broken = await cli.rescue('verify-audit', '--json');
  expect([broken.exitCode, json(broken.stdout)]).toEqual([
    2,
    { kind: 'broken', fault: { seq: 2, problem: 'altered_row' } },
  ]);
});

it('says on stderr why it could not answer', async () => {
  const off = rescueCli(network, { RAFFLE_CONTRACT_ID: '' });
  const ended = await off.rescue('list-all', '--json');
  expect(ended).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('RAFFLE_CONTRACT_ID') as string,
  });
  expect(json(ended.stdout)).toMatchObject({ code: 'PIPELINE_OFF' });
});
