import { describeFailure, type SorolaneError, TransientError } from '../../../src/platform/errors';
import { IpfsGateway } from '../../../src/verification/spv/ipfs-gateway';
import { type Answer, sha256, status, StubGateway } from '../../support/verification-gateway';

const open = new AbortController().signal;

describe('the IPFS gateway client', () => {
  let stub: StubGateway;
  let client: IpfsGateway;
  const MAX = 1000;

  beforeAll(async () => {
    stub = await new StubGateway().start();
    client = new IpfsGateway({ baseUrl: `${stub.baseUrl}/`, timeoutMs: 300 });
  });
  afterAll(() => stub.stop());

  const failureOf = async (cid: string, maxBytes = MAX): Promise<SorolaneError> => {
    try {
      await client.hash(cid, maxBytes, open);
    } catch (error) {
      return error as SorolaneError;
    }
    throw new Error('it did not fail');
  };

  it.each(['raw', 'dag-pb-v0'] as const)('reads and hashes content under a %s CID', async (codec) => {
    const cid = await stub.put('hello', codec);
    expect(await client.hash(cid, MAX, open)).toEqual({ sha256: sha256('hello'), sizeBytes: 5 });
    const read = await client.read(cid, MAX, open);
    expect(Buffer.from(read.bytes).toString()).toBe('hello');
  });

  it.each([
    [404, 'not_found', true],
    [429, 'gateway_error', true],
    [500, 'gateway_error', true],
    [502, 'gateway_error', true],
    [504, 'gateway_error', true],
    [400, 'gateway_rejected', false],
    [401, 'gateway_rejected', false],
    [410, 'gateway_rejected', false],
  ])('reads status %i as %s (retryable: %s)', async (code, reason, retryable) => {
    const cid = await stub.put(`status ${code}`);
    stub.script(cid, status(code));
    const failure = await failureOf(cid);
    expect(failure).toMatchObject({ code: 'SPV_FETCH_FAILED', details: { reason, status: code, cid } });
    expect(describeFailure(failure).retryable).toBe(retryable);
  });

  it.each([
    ['7', 7000],
    ['999999', 3_600_000],
  ])('respects a Retry-After of %s s, for an hour at most', async (seconds, expectedMs) => {
    const cid = await stub.put('later');
    stub.script(cid, status(429, { 'retry-after': seconds }));
    const failure = await failureOf(cid);
    expect(failure instanceof TransientError && failure.retryAfterMs).toBe(expectedMs);
  });

  const announced: Answer = (_request, response) =>
    response.writeHead(200, { 'content-length': MAX + 1 }).end(Buffer.alloc(MAX + 1));
  const unannounced: Answer = (_request, response) => {
    response.writeHead(200);
    // Without end: a client that went on reading would wait for ever.
    response.write(Buffer.alloc(MAX));
    response.write(Buffer.alloc(MAX));
  };
  const cut: Answer = (request, response) => {
    response.writeHead(200, { 'content-length': 100 }).write('half', () => request.socket.destroy());
  };
  const silent: Answer = () => undefined;
  const stalled: Answer = (_request, response) => void response.writeHead(200).write('x');

  it.each([
    ['too_large', false, announced],
    ['too_large', false, unannounced],
    ['unreachable', true, cut],
    ['timeout', true, silent],
    ['timeout', true, stalled],
    ['empty_body', true, status(204)],
    ['integrity_mismatch', false, (_request, response) => response.end('other bytes')],
  ])('fails with %s (retryable: %s)', async (reason, retryable, answer) => {
    const cid = await stub.put(`for ${reason} ${Math.random()}`);
    stub.script(cid, answer);
    const failure = await failureOf(cid);
    expect(failure).toMatchObject({ code: 'SPV_FETCH_FAILED', details: { reason } });
    expect(describeFailure(failure).retryable).toBe(retryable);
  });

  it('fails with unreachable when nobody listens', async () => {
    const gone = await new StubGateway().start();
    const lonely = new IpfsGateway({ baseUrl: gone.baseUrl, timeoutMs: 300 });
    await gone.stop();
    const cid = await stub.put('x');
    await expect(lonely.hash(cid, MAX, open)).rejects.toMatchObject({ details: { reason: 'unreachable' } });
  });

  it('takes other bytes where a CID does not hash the content itself', async () => {
    const cid = await stub.put('as one block', 'dag-pb-v0');
    stub.forge(cid, 'forged');
    await expect(client.hash(cid, MAX, open)).resolves.toMatchObject({ sha256: sha256('forged') });
  });

  it('follows a redirect within the origin, and none to anywhere else', async () => {
    const cid = await stub.put('moved');
    stub.script(cid, status(302, { location: '/elsewhere' }));
    stub.script('/elsewhere', (_request, response) => response.end('moved'));
    expect(await client.hash(cid, MAX, open)).toMatchObject({ sha256: sha256('moved') });

    for (const location of [
      'http://169.254.169.254/latest',
      '//example.test/',
      'file:///etc/passwd',
      'http://[',
    ]) {
      stub.script(cid, status(302, { location }));
      expect(await failureOf(cid)).toMatchObject({
        kind: 'permanent',
        details: { reason: 'gateway_rejected' },
      });
    }
  });

  it('gives up on redirects without end', async () => {
    const cid = await stub.put('in circles');
    stub.script(cid, ...Array.from({ length: 9 }, () => status(302, { location: `/ipfs/${cid}` })));
    expect(await failureOf(cid)).toMatchObject({
      kind: 'permanent',
      details: { reason: 'gateway_rejected' },
    });
    expect(stub.fetches.get(cid)).toBe(4);
  });

  it.each([
    '',
    '../admin',
    'bafkrei',
    'Qm',
    `Qm${'0'.repeat(44)}`,
    'bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy/../../x',
    'zdj7WhuEjrB52m1BisYCtmjH1hSKa7yZ3jEZ9JcXaFRD51wVz',
    `b${'a'.repeat(58)}`,
  ])('asks nobody for what is no CID: %j', async (cid) => {
    const before = [...stub.fetches.values()].reduce((sum, count) => sum + count, 0);
    expect(await failureOf(cid)).toMatchObject({ kind: 'permanent', details: { reason: 'invalid_cid' } });
    expect([...stub.fetches.values()].reduce((sum, count) => sum + count, 0)).toBe(before);
  });

  it("rejects with the caller's own reason when the caller aborts", async () => {
    const cid = await stub.put('slow');
    const abort = new AbortController();
    stub.script(cid, () => abort.abort(new Error('lease lost')));
    await expect(client.hash(cid, MAX, abort.signal)).rejects.toThrow('lease lost');
  });
});
