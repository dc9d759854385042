import { Router } from 'express';
import { mongo } from 'mongoose';
import request from 'supertest';
import { z } from 'zod';
import { requireApiKey } from '../../../src/http/api-key';
import { createApp } from '../../../src/http/app';
import { silentLogger } from '../../../src/platform/logger';
import { refuseOtherMethods } from '../../../src/platform/other-methods';
import { HttpProblem, parseBody, takesNoQuery } from '../../../src/platform/problem';
import { captureLogger } from '../../support/capture-logger';

const KEYS = ['first-key-0123456789', 'second-key-0123456789'];

function probeRoutes(): Router {
  const router = Router();
  router.post('/things', requireApiKey(KEYS), async (req, res) => {
    const thing = await parseBody(z.strictObject({ name: z.string().min(1), size: z.number().int() }), req);
    res.status(202).json({ success: true, data: thing });
  });
  router.get('/things/:id', takesNoQuery, (_req, res) => {
    res.json({ success: true });
  });
  router.get('/teapot', () => {
    throw new HttpProblem(418, 'TEAPOT', 'short and stout');
  });
  router.get('/fault', () => Promise.reject(new Error('password is hunter2')));
  const noServer = new mongo.MongoServerSelectionError('no server', { servers: new Map() } as never);
  router.get('/away', () => Promise.reject(noServer));
  return refuseOtherMethods(router);
}

const appWith = (logger = silentLogger()) =>
  createApp({
    logger,
    corsOrigins: ['https://board.example'],
    bodyLimitBytes: 1024,
    health: { workers: { check: () => Promise.reject(new Error('not asked here')) }, readiness: [] },
    mounts: [{ path: '/api/v1/probe', router: probeRoutes() }],
  });

describe('the HTTP application', () => {
  test('a mutation needs one of the keys', async () => {
    const send = (key?: string) => {
      const call = request(appWith()).post('/api/v1/probe/things').send({ name: 'a', size: 1 });
      return key === undefined ? call : call.set('x-api-key', key);
    };
    expect((await send()).body).toMatchObject({ success: false, code: 'API_KEY_REQUIRED' });
    for (const wrong of ['nope', 'first-key-012345678', `${KEYS[0]!}x`])
      expect((await send(wrong)).status).toBe(401);
    for (const key of KEYS) expect((await send(key)).status).toBe(202);
  });

  test('bad input gets 400 with the problem of each field', async () => {
    const answer = await request(appWith())
      .post('/api/v1/probe/things')
      .set('x-api-key', KEYS[0]!)
      .send({ name: '', size: 1.5 });
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({ success: false, code: 'VALIDATION_FAILED' });
    expect((answer.body as { problems: { field: string }[] }).problems.map(({ field }) => field)).toEqual([
      'name',
      'size',
    ]);
  });

  test.each([
    ['{"name":', 400, 'INVALID_JSON'],
    [JSON.stringify({ name: 'x'.repeat(5000) }), 413, 'BODY_TOO_LARGE', 'larger than 1024 bytes'],
    ['"x"', 400, 'VALIDATION_FAILED', '(body): expected an object, not "x"'],
    ['null', 400, 'VALIDATION_FAILED', '(body): expected an object, not null'],
    ['[1]', 400, 'VALIDATION_FAILED', '(body): expected an object, not a list'],
    ['', 400, 'VALIDATION_FAILED', 'name: is required; size: is required'],
  ])('a body that is no use: %#', async (body, status, code, words = '') => {
    const answer = await request(appWith())
      .post('/api/v1/probe/things')
      .set('x-api-key', KEYS[0]!)
      .set('content-type', 'application/json')
      .send(body);
    expect(answer.status).toBe(status);
    expect(answer.body).toMatchObject({ success: false, code });
    expect((answer.body as { error: string }).error).toContain(words);
  });

  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'application/xml',
    'application/json; charset=latin1',
  ])('a body of %s is 415, and told what to send', async (type) => {
    const answer = await request(appWith())
      .post('/api/v1/probe/things')
      .set('x-api-key', KEYS[0]!)
      .set('content-type', type)
      .send('name=a');
    expect([answer.status, (answer.body as { code: string }).code]).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE']);
    expect((answer.body as { error: string }).error).toMatch(/send application\/json/i);
  });

  test('a problem quotes what was sent, in short and never a secret key', async () => {
    const secret = `S${'A'.repeat(55)}`;
    const send = async (body: object): Promise<string> => {
      const call = request(appWith()).post('/api/v1/probe/things').set('x-api-key', KEYS[0]!).send(body);
      return ((await call).body as { error: string }).error;
    };
    expect(await send({ name: 7, size: 'x'.repeat(100) })).toBe(
      `name: expected a string, not 7; size: expected a number, not "${'x'.repeat(39)}…"`,
    );
    expect(await send({ name: 'a', size: secret, [secret]: 1 })).not.toContain(secret.slice(0, 20));
  });

  test('a known path with another method is 405, with those that it knows', async () => {
    for (const method of ['put', 'patch', 'delete', 'get'] as const) {
      const answer = await request(appWith())[method]('/api/v1/probe/things');
      expect([answer.status, answer.headers['allow']]).toEqual([405, 'POST, OPTIONS']);
      expect(answer.body).toMatchObject({ success: false, code: 'METHOD_NOT_ALLOWED' });
    }
    expect((await request(appWith()).post('/api/v1/live')).headers['allow']).toBe('GET, HEAD, OPTIONS');
    expect((await request(appWith()).head('/api/v1/live')).status).toBe(200);
    expect((await request(appWith()).options('/api/v1/probe/things')).status).toBe(204);
  });

  test('a query key where none is known is refused, but not for a probe', async () => {
    const answer = await request(appWith()).get('/api/v1/probe/things/1?limit[$gt]=1');
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({
      problems: [{ field: 'limit[$gt]', problem: 'is not known; nothing is taken here' }],
    });
    expect((await request(appWith()).get('/api/v1/live?t=1')).status).toBe(200);
  });

  test('a path or a body in another encoding than it claims is the fault of the caller, and logged as no fault', async () => {
    const { logger, text } = captureLogger();
    const app = appWith(logger);
    const path = await request(app).get('/api/v1/probe/things/%E0%A4%A');
    expect(path.status).toBe(400);
    expect(path.body).toMatchObject({ success: false, code: 'BAD_REQUEST' });
    const body = await request(app)
      .post('/api/v1/probe/things')
      .set('x-api-key', KEYS[0]!)
      .set('content-type', 'application/json')
      .set('content-encoding', 'gzip')
      .send('{}');
    expect(body.status).toBe(400);
    expect(body.body).toMatchObject({ success: false, code: 'BAD_REQUEST' });
    expect(text()).not.toContain('request failed');
  });

  test('a problem is answered as it is, an unknown route is 404', async () => {
    expect((await request(appWith()).get('/api/v1/probe/teapot')).status).toBe(418);
    const unknown = await request(appWith()).get('/api/v1/nothing');
    expect(unknown.status).toBe(404);
    expect(unknown.body).toMatchObject({ code: 'NO_SUCH_ROUTE' });
  });

  test('a fault tells the caller nothing but where to look, and the log all', async () => {
    const { logger, lines } = captureLogger();
    const answer = await request(appWith(logger)).get('/api/v1/probe/fault').set('x-request-id', 'trace-1');
    expect(answer.status).toBe(500);
    expect(answer.text).not.toContain('hunter2');
    expect(answer.headers['x-request-id']).toBe('trace-1');
    expect(lines().find(({ level }) => level === 'error')).toMatchObject({
      requestId: 'trace-1',
      err: { message: 'password is hunter2' },
    });
  });

  test('a database that is away is 503, not 500', async () => {
    expect((await request(appWith()).get('/api/v1/probe/away')).status).toBe(503);
  });

  test('only listed origins are let in', async () => {
    const from = (origin: string) => request(appWith()).get('/api/v1/live').set('origin', origin);
    expect((await from('https://board.example')).headers['access-control-allow-origin']).toBe(
      'https://board.example',
    );
    expect((await from('https://evil.example')).headers['access-control-allow-origin']).toBeUndefined();
    const preflight = await request(appWith())
      .options('/api/v1/probe/things')
      .set('origin', 'https://board.example');
    expect(preflight.status).toBe(204);
  });

  test('a request id that could forge a log line is replaced', async () => {
    const answer = await request(appWith()).get('/api/v1/live').set('x-request-id', 'a b{}"');
    expect(answer.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
  });
});
