import { Keypair } from '@stellar/stellar-sdk';
import express, { type Express } from 'express';
import request from 'supertest';
import { requireApiKey } from '../../../src/http/api-key';
import { answerErrors, unknownRoute } from '../../../src/http/errors';
import { silentLogger } from '../../../src/platform/logger';
import { TransientError } from '../../../src/platform/errors';
import { createRandomnessPipeline } from '../../../src/randomness/randomness.pipeline';
import type { AuditPage } from '../../../src/randomness/audit/audit-trail';
import type { QueueHealth } from '../../../src/randomness/http/queue-health-status';
import type { RandomnessVerdict } from '../../../src/randomness/seeds/randomness-generator';
import type { Submitted } from '../../../src/randomness/randomness.service';
import type { DeadLetterItem, JobListItem, RequestView } from '../../../src/randomness/http/views';
import { jobStates } from '../../../src/randomness/jobs/randomness-lifecycle';
import {
  openPipeline,
  openRandomness,
  randomnessSettingsFor,
  type RandomnessFixture,
} from '../../support/randomness-fixture';
import { until } from '../../support/worker-fixture';

const apiKey = 'key-for-tests-0123456789';
let world: RandomnessFixture;
let app: Express;
/** Where each raffle is a contract of its own. */
let instances: Express;

beforeAll(async () => {
  world = await openRandomness({ QUEUE_MAX_RETRIES: '1' });
  app = await appOf({});
  instances = await appOf({ RAFFLE_CONTRACT_INTERFACE: 'provide_randomness' });
});
afterAll(() => world.close());

async function appOf(settings: Record<string, string>): Promise<Express> {
  const pipeline = await openPipeline(world.connection, {
    submitter: world.chain,
    reader: world.chain,
    feeEstimator: world.chain,
    latestLedger: () => Promise.resolve(world.chain.ledger),
    settings: randomnessSettingsFor({ QUEUE_MAX_RETRIES: '1', ...settings }),
    requireApiKey: requireApiKey([apiKey]),
  });
  const made = express();
  made.use(express.json());
  made.use(pipeline.basePath, pipeline.router);
  made.use(unknownRoute);
  made.use(answerErrors(silentLogger()));
  return made;
}

interface Answer<Body> {
  status: number;
  body: Body;
  headers: Record<string, string>;
}
interface Envelope<Data> {
  success: boolean;
  data: Data;
}
interface Refusal {
  code: string;
  error: string;
  problems: { field: string; problem: string }[];
}

async function get<Body>(path: string): Promise<Answer<Body>> {
  return await request(app).get(path);
}
async function post<Body>(path: string, body: object, key: string | null = apiKey): Promise<Answer<Body>> {
  const call = request(app).post(path);
  if (key !== null) call.set('x-api-key', key);
  return await call.send(body);
}
const data = async <Data>(path: string): Promise<Data> => (await get<Envelope<Data>>(path)).body.data;

describe('requests', () => {
  it('take a key, answer 202, and the same id again gives the first one', async () => {
    world.chain.drawing(456);
    const body = { requestId: 'req-123', raffleId: 456, prizeAmount: 20_000 };
    expect((await post('/api/v1/randomness/requests', body, null)).status).toBe(401);
    const first = await post('/api/v1/randomness/requests', body);
    expect(first.status).toBe(202);
    expect(first.body).toEqual({
      success: true,
      data: { requestId: 'req-123', state: 'queued', alreadyThere: false },
    });
    const second = await post<Envelope<Submitted>>('/api/v1/randomness/requests', {
      ...body,
      prizeAmount: 1,
    });
    expect(second.body.data.alreadyThere).toBe(true);
  });

  test.each([
    [{ raffleId: 1 }, ['requestId']],
    [{ requestId: 'x y', raffleId: -1 }, ['requestId', 'raffleId']],
    [{ requestId: 'x', raffleId: 2 ** 32 }, ['raffleId']],
    [{ requestId: 'x' }, ['raffleId']],
    [{ requestId: 'x', raffleId: 1, prizeAmount: -1, priority: 'urgent' }, ['prizeAmount', 'priority']],
    [{ requestId: 'x', raffleId: 1, contractId: 'C123' }, ['contractId']],
    [{ requestId: 'x', raffleId: 1, replay: true }, ['replay']],
    [{ requestId: '-x', raffleId: 1.5, priority: 1 }, ['requestId', 'raffleId', 'priority']],
    [{ requestId: 7, raffleId: 2 ** 60 }, ['requestId', 'raffleId']],
  ])('name every field that is wrong: %j', async (body, fields) => {
    const answer = await post<Refusal>('/api/v1/randomness/requests', body);
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({ success: false, code: 'VALIDATION_FAILED' });
    expect(answer.body.problems.map(({ field }) => field)).toEqual(fields);
    // In words of ours, whatever it was.
    expect(answer.body.error).not.toMatch(/Invalid|Too (big|small)|\ba object|NaN/);
  });

  test.each([
    [{ requestId: '007' }, 'requestId', /from 0 to 18446744073709551615 without leading zeros.*, not "007"$/],
    [{ requestId: '18446744073709551616' }, 'requestId', /not "18446744073709551616"$/],
    [{ requestId: 'req-123' }, 'requestId', /not "req-123"$/],
    [{ requestId: '7', raffleId: 1 }, 'raffleId', /is not taken/],
  ])('of raffles that are contracts: %j is refused', async (body, field, problem) => {
    const answer: Answer<Refusal> = await request(instances)
      .post('/api/v1/randomness/requests')
      .set('x-api-key', apiKey)
      .send(body);
    expect(answer.status).toBe(400);
    expect(answer.body.problems).toEqual([{ field, problem: expect.stringMatching(problem) as string }]);
  });

  it('of raffles that are contracts take the largest id there is', async () => {
    const answer: Answer<unknown> = await request(instances)
      .post('/api/v1/randomness/requests')
      .set('x-api-key', apiKey)
      .send({ requestId: '18446744073709551615' });
    expect(answer.status).toBe(202);
    await world.connection
      .collection('randomnessJobs')
      .deleteOne({ contractRequestId: '18446744073709551615' });
  });

  it('show no seed before it is on chain, and then all that proves it', async () => {
    world.chain.scripts.prepare.push(async () => {
      const answer = await data<RequestView>('/api/v1/randomness/requests/req-123');
      expect(answer).toMatchObject({ currentState: 'submitting', randomness: null, priority: 1 });
      const seed = (await world.job('req-123')).randomness!.seed;
      const audit = await data<AuditPage>('/api/v1/randomness/audit?requestId=req-123');
      expect(JSON.stringify([answer, audit])).not.toContain(seed);
      return world.chain.prepare(
        {
          ...submissionOf((await world.job('req-123')).key),
          call: { contractId: 'C', functionName: 'f', args: callArgs(456, seed) },
        },
        new AbortController().signal,
      );
    });
    await world.tryOnce('req-123');
    const found = await data<RequestView>('/api/v1/randomness/requests/req-123');
    expect(found).toMatchObject({
      currentState: 'confirmed',
      raffleId: 456,
      attemptCount: 1,
      transitionCount: 5,
    });
    const { seed, proof, publicKey } = found.randomness!;
    const verify = (more: object) =>
      post<Envelope<RandomnessVerdict>>(
        '/api/v1/randomness/verify',
        { requestId: 'req-123', proof, publicKey, ...more },
        null,
      );
    expect((await verify({})).body).toEqual({
      success: true,
      data: { valid: true, method: 'PRNG', messageVersion: 1, seed, oracleKey: true },
    });
    expect((await verify({ seed: 'f'.repeat(64) })).body.data).toEqual({ valid: false, oracleKey: true });
    expect((await verify({ raffleId: 457 })).body.data).toEqual({ valid: false, oracleKey: true });
    expect((await verify({ requestId: 'req-124' })).status).toBe(400);
    const key = await data<{ address: string; hex: string; base64: string }>('/api/v1/randomness/public-key');
    expect(key.address).toBe(publicKey);
    expect(Buffer.from(key.base64, 'base64').toString('hex')).toBe(key.hex);
    expect((await get('/api/v1/randomness/requests/nobody')).status).toBe(404);
  });

  it('are proved by any key, but it is told whether that is ours', async () => {
    const stranger = Keypair.fromRawEd25519Seed(Buffer.alloc(32, 9));
    const message = Buffer.concat([Buffer.from('req-9'), Buffer.from([0, 0, 0, 1])]);
    const verify = (claim: object) =>
      post<Envelope<RandomnessVerdict> & Refusal>(
        '/api/v1/randomness/verify',
        { requestId: 'req-9', raffleId: 1, ...claim },
        null,
      );
    const proof = stranger.sign(message).toString('hex');
    expect((await verify({ proof, publicKey: stranger.publicKey() })).body.data).toMatchObject({
      valid: true,
      method: 'VRF',
      oracleKey: false,
    });
    const smallOrder = `01${'00'.repeat(31)}`;
    const forged = await verify({ proof: `01${'00'.repeat(63)}`, publicKey: smallOrder });
    expect(forged.status).toBe(400);
    expect(forged.body.problems).toMatchObject([{ field: 'publicKey' }]);
  });

  it('of raffles that are contracts have no number that could be missing', async () => {
    const key = Keypair.fromRawEd25519Seed(Buffer.alloc(32, 9));
    const answer: Answer<Envelope<RandomnessVerdict>> = await request(instances)
      .post('/api/v1/randomness/verify')
      .send({
        requestId: '7',
        proof: key.sign(Buffer.from('7')).toString('hex'),
        publicKey: key.publicKey(),
      });
    expect(answer.body.data).toMatchObject({ valid: true, oracleKey: false });
  });

  it('leave an audit trail, paged by key', async () => {
    const page = await data<AuditPage>('/api/v1/randomness/audit?limit=1');
    expect(page.rows).toHaveLength(1);
    expect(page.rows[0]).toMatchObject({ seq: 2, event: 'revealed', requestId: 'req-123' });
    const older = await data<AuditPage>(`/api/v1/randomness/audit?limit=5&after=${page.next}&raffleId=456`);
    expect(older.rows).toMatchObject([{ seq: 1, event: 'committed' }]);
    expect(older.next).toBeNull();
  });

  it('show who stepped in, and why, to those who hold a key', async () => {
    await world.pipeline.audit.append({
      event: 'rescue_force_fail',
      eventKey: 'rescue:1',
      requestId: 'req-123',
      raffleId: 456,
      data: { operator: 'alice', reason: 'the raffle was void', result: 'done' },
    });
    const path = '/api/v1/randomness/audit?limit=1';
    const { rows } = await data<AuditPage>(path);
    expect(JSON.stringify(rows)).not.toMatch(/alice|void/);
    expect(rows).toMatchObject([{ event: 'rescue_force_fail', redacted: true, data: { result: 'done' } }]);
    const keyed: Answer<Envelope<AuditPage>> = await request(app).get(path).set('x-api-key', apiKey);
    expect(keyed.body.data.rows).toEqual([
      {
        ...rows[0],
        redacted: undefined,
        data: { operator: 'alice', reason: 'the raffle was void', result: 'done' },
      },
    ]);
    expect((await request(app).get(path).set('x-api-key', 'guessed')).status).toBe(401);
  });
});

test.each([
  ['/api/v1/randomness/audit?before=1', 'before', 'limit, after, requestId, raffleId'],
  ['/api/v1/randomness/audit?after=xx', 'after', 'not "xx"'],
  ['/api/v1/randomness/audit?after=', 'after', 'not ""'],
  ['/api/v1/randomness/audit?limit=1&limit=2', 'limit', 'once'],
  ['/api/v1/randomness/public-key?x=1', 'x', 'nothing is taken'],
  ['/api/v1/queue/jobs/failed?after[$gt]=', 'after[$gt]', 'limit, after'],
  ['/api/v1/queue/dead-letter?limit[$gt]=1', 'limit[$gt]', 'limit, after'],
  ['/api/v1/queue/dead-letter?limit=1e2', 'limit', 'from 1 to 500, not "1e2"'],
  ['/queue/metrics?bogus=1', 'bogus', 'nothing is taken'],
])('%s is refused, and says what is known', async (path, field, words) => {
  const { status, body } = await get<Refusal>(path);
  expect(status).toBe(400);
  expect(body.problems).toEqual([{ field, problem: expect.stringContaining(words) as string }]);
});

test.each([
  ['/api/v1/randomness/requests', 'POST, OPTIONS'],
  ['/api/v1/randomness/requests/x', 'GET, HEAD, OPTIONS'],
  ['/api/v1/queue/jobs/failed', 'GET, HEAD, OPTIONS'],
  ['/queue/health', 'GET, HEAD, OPTIONS'],
])('DELETE %s is 405', async (path, allow) => {
  const answer = await request(app).delete(path);
  expect([answer.status, answer.headers['allow']]).toEqual([405, allow]);
});

describe.each(['/api/v1/queue', '/queue'])('%s', (base) => {
  it('gives metrics, bare', async () => {
    const { status, body } = await get<object>(`${base}/metrics`);
    expect(status).toBe(200);
    expect(Object.keys(body)).toEqual([
      'queuedCount',
      'generatingCount',
      'submittingCount',
      'confirmingCount',
      'retryingCount',
      'confirmedCount',
      'failedCount',
      'deadLetteredCount',
      'pendingCount',
      'totalFailedCount',
    ]);
  });

  it('gives the configuration', async () => {
    const { body } = await get(`${base}/config`);
    expect(body).toEqual({
      maxRetries: 1,
      initialBackoffMs: 2000,
      backoffMultiplier: 2,
      maxBackoffMs: 60_000,
      confirmationTimeoutMs: 30_000,
      maxConcurrency: 10,
      generationTimeoutMs: 15_000,
      submissionTimeoutMs: 45_000,
      activeProcessing: 0,
    });
  });

  it('refuses an unknown state and names the known ones', async () => {
    for (const state of ['RETRYING', 'nothing']) {
      const { status, body } = await get<Refusal>(`${base}/jobs/${state}`);
      expect(status).toBe(400);
      expect(body.code).toBe('UNKNOWN_STATE');
      for (const known of jobStates) expect(body.error).toContain(known);
    }
  });

  test.each(jobStates)('lists %s jobs', async (state) => {
    const { status, body } = await get(`${base}/jobs/${state}`);
    expect(status).toBe(200);
    expect(Array.isArray(body)).toBe(true);
  });

  it('lists jobs in pages', async () => {
    for (let index = 1; index <= 5; index++) {
      await post('/api/v1/randomness/requests', { requestId: `page-${index}`, raffleId: 1000 + index });
    }
    const seen: string[] = [];
    for (let url: string | undefined = `${base}/jobs/queued?limit=2`; url !== undefined;) {
      const { body, headers }: Answer<JobListItem[]> = await get(url);
      seen.push(...body.map(({ requestId }) => requestId));
      url = /<([^>]+)>; rel="next"/.exec(headers['link'] ?? '')?.[1];
    }
    expect(seen).toEqual(['page-1', 'page-2', 'page-3', 'page-4', 'page-5']);
    const { body } = await get(`${base}/jobs/queued?limit=1`);
    expect(body).toEqual([
      {
        requestId: 'page-1',
        raffleId: 1001,
        currentState: 'queued',
        attemptCount: 0,
        createdAt: expect.stringMatching(/^\d{4}-.*Z$/) as string,
        updatedAt: expect.stringMatching(/Z$/) as string,
        lastError: null,
        txHash: null,
        ledger: null,
        transitionCount: 1,
      },
    ]);
    expect((await get(`${base}/jobs/queued?after=../x`)).status).toBe(400);
  });

  it('goes from healthy to unhealthy with a dead letter, and lists it', async () => {
    const id = `dead-${base.length}`;
    world.chain.drawing(base.length);
    await world.submit(id, base.length);
    world.chain.scripts.prepare.push(
      new TransientError('INSUFFICIENT_FEE', 'Transaction failed: insufficient fee'),
    );
    await world.tryOnce(id);
    await until('the figures follow', async () => {
      const { status, body } = await get<QueueHealth>(`${base}/health`);
      expect(status).toBe(200);
      expect(Object.keys(body)).toEqual([
        'status',
        'pendingCount',
        'failedCount',
        'deadLetteredCount',
        'activeProcessing',
        'maxConcurrency',
        'timestamp',
      ]);
      return body.status === 'unhealthy';
    });
    const { body } = await get<DeadLetterItem[]>(`${base}/dead-letter`);
    expect(body.at(-1)).toEqual({
      requestId: id,
      raffleId: base.length,
      attemptCount: 1,
      createdAt: expect.any(String) as string,
      updatedAt: expect.any(String) as string,
      lastError: 'Transaction failed: insufficient fee',
      transitions: expect.arrayContaining([
        {
          from: 'retrying',
          to: 'dead-lettered',
          timestamp: expect.any(String) as string,
          reason: 'Exhausted all 1 attempts',
          attemptNumber: 1,
        },
      ]) as object[],
    });
  });
});

it('lists dead letters in pages', async () => {
  for (const raffle of [501, 502]) {
    world.chain.drawing(raffle);
    await world.submit(`dead-${raffle}`, raffle);
    world.chain.scripts.prepare.push(new TransientError('RPC_UNAVAILABLE', 'down'));
    await world.tryOnce(`dead-${raffle}`);
  }
  const seen: number[] = [];
  let url: string | undefined = '/queue/dead-letter?limit=1';
  while (url !== undefined) {
    const { body, headers }: Answer<DeadLetterItem[]> = await get(url);
    expect(body).toHaveLength(1);
    seen.push(body[0]!.raffleId!);
    url = /<([^>]+)>; rel="next"/.exec(headers['link'] ?? '')?.[1];
    expect(url?.startsWith('/queue/dead-letter?')).not.toBe(false);
  }
  expect(seen.slice(-2)).toEqual([501, 502]);
  expect(seen).toEqual([...new Set(seen)]);
});

it('is off without a raffle contract', () => {
  const { RAFFLE_CONTRACT_ID: _, ...settings } = randomnessSettingsFor();
  expect(
    createRandomnessPipeline({
      connection: world.connection,
      settings,
      submitter: world.chain,
      reader: world.chain,
      feeEstimator: world.chain,
      latestLedger: () => Promise.resolve(1),
    } as unknown as Parameters<typeof createRandomnessPipeline>[0]),
  ).toBeNull();
});

const submissionOf = (jobKey: string) =>
  ({
    intent: `randomness:${jobKey}`,
    epoch: 1,
    feeClass: 'standard',
    alreadyDoneCodes: [],
    findEvidence: () => Promise.resolve(null),
  }) as unknown as Parameters<typeof world.chain.prepare>[0];

const callArgs = (raffleId: number, seed: string) => [
  { type: 'u32' as const, value: raffleId },
  { type: 'bytes' as const, value: Buffer.from(seed, 'hex') },
];
