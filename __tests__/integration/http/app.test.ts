import { Router } from 'express';
import { mongo } from 'mongoose';
import request from 'supertest';
import { z } from 'zod';
import { requireApiKey } from '../../../src/http/api-key';
import { createApp } from '../../../src/http/app';
import { silentLogger } from '../../../src/platform/logger';
import { HttpProblem, parseInput } from '../../../src/platform/problem';
import { captureLogger } from '../../support/capture-logger';

const KEYS = ['first-key-0123456789', 'second-key-0123456789'];

function probeRoutes(): Router {
  const router = Router();
  router.post('/things', requireApiKey(KEYS), async (req, res) => {
    const thing = await parseInput(z.object({ name: z.string().min(1), size: z.number().int() }), req.body);
    res.status(202).json({ success: true, data: thing });
  });
  router.get('/things/:id', (_req, res) => {
    res.json({ success: true });
  });
  router.get('/teapot', () => {
    throw new HttpProblem(418, 'TEAPOT', 'short and stout');
  });
  router.get('/fault', () => Promise.reject(new Error('password is hunter2')));
  const noServer = new mongo.MongoServerSelectionError('no server', { servers: new Map() } as never);
  router.get('/away', () => Promise.reject(noServer));
  return router;
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
    [JSON.stringify({ name: 'x'.repeat(5000) }), 413, 'BODY_TOO_LARGE'],
  ])('a body that cannot be read: %#', async (body, status, code) => {
    const answer = await request(appWith())
      .post('/api/v1/probe/things')
      .set('x-api-key', KEYS[0]!)
      .set('content-type', 'application/json')
      .send(body);
    expect(answer.status).toBe(status);
    expect(answer.body).toMatchObject({ success: false, code });
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
