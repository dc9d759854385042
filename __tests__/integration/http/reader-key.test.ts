import express from 'express';
import request from 'supertest';
import { requireReaderKey } from '../../../src/http/api-key';
import { answerErrors } from '../../../src/http/errors';
import { silentLogger } from '../../../src/platform/logger';

const KEYS = ['first-key-0123456789', 'second-key-0123456789'];

const read = (keys: string[], headers: Record<string, string>) => {
  const app = express();
  app.get('/figures', requireReaderKey(keys), (_request, response) => {
    response.send('figures');
  });
  app.use(answerErrors(silentLogger()));
  return request(app).get('/figures').set(headers);
};

describe('a read that asks for a key', () => {
  test.each(KEYS)('takes %s as the mutations do, or as a bearer token', async (key) => {
    expect((await read(KEYS, { 'x-api-key': key })).text).toBe('figures');
    expect((await read(KEYS, { authorization: `Bearer ${key}` })).text).toBe('figures');
  });

  test('refuses any other, and says how to send one', async () => {
    const refusals: [Record<string, string>, string][] = [
      [{}, 'API_KEY_REQUIRED'],
      [{ authorization: `Basic ${KEYS[0]!}` }, 'API_KEY_REQUIRED'],
      [{ 'x-api-key': '' }, 'API_KEY_INVALID'],
      [{ 'x-api-key': `${KEYS[0]!}x` }, 'API_KEY_INVALID'],
      [{ authorization: 'Bearer first-key' }, 'API_KEY_INVALID'],
    ];
    for (const [headers, code] of refusals) {
      const answer = await read(KEYS, headers);
      expect([answer.status, (answer.body as { code: string }).code]).toEqual([401, code]);
      expect(answer.headers).toMatchObject({ 'www-authenticate': 'Bearer' });
    }
  });

  test('is open where there are no keys', async () => {
    expect((await read([], {})).status).toBe(200);
  });
});
