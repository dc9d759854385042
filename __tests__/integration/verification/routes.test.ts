import express from 'express';
import request from 'supertest';
import { Keypair } from '@stellar/stellar-sdk';
import { answerErrors } from '../../../src/http/errors';
import { silentLogger } from '../../../src/platform/logger';
import type { JobPage, Submitted } from '../../../src/verification/verification.service';
import { putSample } from '../../support/verification-gateway';
import {
  apiKey,
  runOnce,
  verificationFixture,
  type VerificationFixture,
} from '../../support/verification-fixture';

interface Envelope<Data> {
  success: boolean;
  data: Data;
  code: string;
  problems: { field: string; problem: string }[];
}

describe('the verification API', () => {
  let fixture: VerificationFixture;
  let app: express.Express;

  beforeAll(async () => {
    fixture = await verificationFixture();
    app = express();
    app.use(express.json());
    app.use(fixture.pipeline.basePath, fixture.pipeline.router);
    app.use(answerErrors(silentLogger()));
  });
  afterAll(() => fixture.close());

  const base = '/api/v1/verification';
  const post = (body: object, headers: Record<string, string> = { 'x-api-key': apiKey }) =>
    request(app).post(`${base}/requests`).set(headers).send(body);
  const bodyOf = <Data>(response: { body: unknown }) => response.body as Envelope<Data>;
  const sample = async (requester = fixture.requester) => {
    const { manifestCid, mediaCid } = await putSample(fixture.gateway, { creator: requester });
    return { manifestCid, mediaCid, requester };
  };

  it('takes a request in with 202, and shows request and job from then on', async () => {
    const body = await sample();
    const response = await post(body);
    expect(response.status).toBe(202);
    const { success, data } = bodyOf<Submitted>(response);
    expect(success).toBe(true);
    expect(data).toMatchObject({ status: 'pending', alreadyThere: false });

    const pending = await request(app).get(`${base}/requests/${data.requestId}`);
    expect(bodyOf(pending).data).toMatchObject({
      ...body,
      status: 'pending',
      jobId: data.jobId,
      attempts: 0,
    });
    await runOnce(fixture);
    const job = await request(app).get(`${base}/jobs/${data.jobId}`);
    expect(job.status).toBe(200);
    expect(bodyOf(job).data).toMatchObject({
      id: data.jobId,
      requestId: data.requestId,
      status: 'completed',
      ownerPublicKey: fixture.requester,
      certificateId: expect.stringMatching(/^\d+$/) as string,
    });
    expect(JSON.stringify(job.body)).not.toMatch(/epoch|worker-1|lease/);
  });

  it('is closed without a key, and open for reading', async () => {
    expect((await post(await sample(), {})).status).toBe(401);
    expect((await post(await sample(), { 'x-api-key': 'wrong' })).status).toBe(401);
    expect((await request(app).get(`${base}/jobs?ownerPublicKey=${fixture.requester}`)).status).toBe(200);
  });

  it('tells the problem of each field', async () => {
    const response = await post({
      manifestCid: 'Qmnot',
      requester: 'GAAZI4TCR3TY5OJHCTJC2A4QSY6CJWJH5IAJTGKIN2ER7LBNVKOCCWNA',
      idempotencyKey: 'with space',
      surprise: 1,
    });
    expect(response.status).toBe(400);
    const { success, code, problems } = bodyOf(response);
    expect([success, code]).toEqual([false, 'VALIDATION_FAILED']);
    expect(Object.fromEntries(problems.map(({ field, problem }) => [field, problem]))).toEqual({
      manifestCid: 'expected an IPFS CID, version 0 or version 1 in base32, not "Qmnot"',
      mediaCid: 'is required',
      requester: 'expected a Stellar account address (G…), not "GAAZI4TCR3TY5OJHCTJC2A4QSY6CJWJH5IAJTGK…"',
      idempotencyKey: 'expected 1 to 200 printable characters without spaces, not "with space"',
      surprise:
        'is not known; known: manifestCid, mediaCid, requester, idempotencyKey, canonicalManifestHash',
    });
  });

  it.each([[[]], ['text'], [null]])('refuses a body of %j', async (body) => {
    const response = await request(app)
      .post(`${base}/requests`)
      .set({ 'x-api-key': apiKey, 'content-type': 'application/json' })
      .send(JSON.stringify(body));
    expect(response.status).toBe(400);
  });

  it('refuses query keys that it does not know, other methods, and bodies that are no JSON', async () => {
    const unknown = await request(app).get(`${base}/jobs?ownerPublicKey=${fixture.requester}&bogus=1`);
    expect(unknown.status).toBe(400);
    expect(bodyOf(unknown).problems).toEqual([
      { field: 'bogus', problem: 'is not known; known: ownerPublicKey, limit, after' },
    ]);
    const other = await request(app).put(`${base}/requests`);
    expect([other.status, other.headers['allow']]).toEqual([405, 'POST, OPTIONS']);
    const form = await request(app)
      .post(`${base}/requests`)
      .set('x-api-key', apiKey)
      .type('form')
      .send('a=1');
    expect(form.status).toBe(415);
  });

  it('gives the first request for a repeated key, whichever way the key came', async () => {
    const body = await sample();
    const first = bodyOf<Submitted>(await post({ ...body, idempotencyKey: 'k1' })).data;
    const inHeader = await post(await sample(), { 'x-api-key': apiKey, 'idempotency-key': 'k1' });
    expect(inHeader.status).toBe(202);
    expect(bodyOf<Submitted>(inHeader).data).toEqual({ ...first, alreadyThere: true });
    await runOnce(fixture);
    expect(bodyOf<Submitted>(await post({ ...body, idempotencyKey: 'k1' })).data.status).toBe('completed');

    const unequal = await post(
      { ...body, idempotencyKey: 'k1' },
      { 'x-api-key': apiKey, 'idempotency-key': 'k2' },
    );
    expect([unequal.status, bodyOf(unequal).problems[0]?.field]).toEqual([400, 'idempotencyKey']);
  });

  it('makes one request of 25 at once with one key', async () => {
    const body = { ...(await sample()), idempotencyKey: 'at once'.replace(' ', '-') };
    const answers = await Promise.all(Array.from({ length: 25 }, () => post(body)));
    const data = answers.map((answer) => bodyOf<Submitted>(answer).data);
    expect(new Set(data.map(({ requestId, jobId }) => `${requestId}/${jobId}`)).size).toBe(1);
    expect(data.filter(({ alreadyThere }) => !alreadyThere)).toHaveLength(1);
    await runOnce(fixture);
  });

  it("lists an owner's jobs newest first, page by page, each once", async () => {
    const owner = Keypair.random().publicKey();
    const made: string[] = [];
    for (let count = 0; count < 7; count += 1) {
      made.push(bodyOf<Submitted>(await post(await sample(owner))).data.jobId);
    }
    const seen: string[] = [];
    let next: string | null = '';
    while (next !== null) {
      const url = `${base}/jobs?ownerPublicKey=${owner}&limit=3${next === '' ? '' : `&after=${next}`}`;
      const page: JobPage = bodyOf<JobPage>(await request(app).get(url)).data;
      seen.push(...page.jobs.map(({ id }) => id));
      next = page.next;
    }
    expect([...seen].sort()).toEqual([...made].sort());
    const times = await Promise.all(seen.map(async (id) => (await fixture.jobOf(id)).createdAt.getTime()));
    expect(times).toEqual([...times].sort((a, b) => b - a));
    for (let count = 0; count < 7; count += 1) await runOnce(fixture);
  });

  it.each([
    ['jobs', 'ownerPublicKey'],
    ['jobs?ownerPublicKey=G', 'ownerPublicKey'],
    ['jobs?ownerPublicKey=%OWNER%&limit=0', 'limit'],
    ['jobs?ownerPublicKey=%OWNER%&limit=101', 'limit'],
    ['jobs?ownerPublicKey=%OWNER%&limit=x', 'limit'],
    ['jobs?ownerPublicKey=%OWNER%&after=1', 'after'],
    ['jobs/not-an-id', 'id'],
    ['requests/not-an-id', 'id'],
  ])('answers 400 to %s, naming %s', async (path, field) => {
    const response = await request(app).get(`${base}/${path.replace('%OWNER%', fixture.requester)}`);
    expect(response.status).toBe(400);
    expect(bodyOf(response).problems.map((problem) => problem.field)).toEqual([field]);
  });

  it.each(['jobs', 'requests'])('answers 404 to an unknown id in %s', async (what) => {
    const response = await request(app).get(`${base}/${what}/${'0'.repeat(24)}`);
    expect([response.status, bodyOf(response).code]).toEqual([404, 'NOT_FOUND']);
  });

  it('stores what looks like an operator as the text it is', async () => {
    const body = { ...(await sample()), idempotencyKey: '$$NOW' };
    const { requestId } = bodyOf<Submitted>(await post(body)).data;
    expect((await fixture.requestOf(requestId)).eventId).toBe('api:$$NOW');
    await runOnce(fixture);
  });
});
