import { createHash } from 'node:crypto';
import { Bench } from './support';

describe('IPFS gateway', () => {
  let bench: Bench;

  beforeEach(async () => {
    bench = await Bench.start();
  });

  afterEach(() => bench.stop());

  const get = (cid: string, timeoutMs = 5_000) =>
    fetch(`${bench.net.ipfsUrl}/${cid}`, { signal: AbortSignal.timeout(timeoutMs) });

  const bytesOf = async (response: Response): Promise<Buffer> => Buffer.from(await response.arrayBuffer());

  const onRead = (fault: object) => bench.net.setFaults({ rules: [{ surface: 'ipfs', fault } as never] });

  it('names content as IPFS does', async () => {
    const hello = Buffer.from('hello');
    // `ipfs add --cid-version 1 --raw-leaves` and `ipfs add` of the same five bytes.
    expect(await bench.net.gateway.put(hello)).toBe(
      'bafkreibm6jg3ux5qumhcn2b3flc3tyu6dmlb4xa7u5bf44yegnrjhc4yeq',
    );
    expect(await bench.net.gateway.put(hello, { codec: 'dag-pb-v0' })).toBe(
      'QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX',
    );
    const { CID } = await import('multiformats/cid');
    const cid = CID.parse(await bench.net.gateway.put(hello));
    expect(Buffer.from(cid.multihash.digest)).toEqual(createHash('sha256').update(hello).digest());
  });

  it('serves what was put in, here or over HTTP, and nothing else', async () => {
    const bytes = Buffer.alloc(300_000, 3);
    const upload = await fetch(`${bench.net.ipfsUrl}?codec=dag-pb-v0`, { method: 'POST', body: bytes });
    const { cid } = (await upload.json()) as { cid: string };
    expect(cid).toMatch(/^Qm/);
    expect((await bytesOf(await get(cid))).equals(bytes)).toBe(true);
    bench.net.gateway.remove(cid);
    expect((await get(cid)).status).toBe(404);
  });

  it('fails in the ways that gateways fail', async () => {
    const content = Buffer.from('{"contentHash":"…"}'.repeat(20));
    const cid = await bench.net.gateway.put(content);
    for (const status of [404, 429, 500]) {
      onRead({ kind: 'httpStatus', status, ...(status === 429 && { retryAfterSeconds: 1 }) });
      const response = await get(cid);
      expect(response.status).toBe(status);
      expect(response.headers.get('retry-after')).toBe(status === 429 ? '1' : null);
    }
    onRead({ kind: 'wrongBytes' });
    const wrong = await bytesOf(await get(cid));
    expect(wrong).toHaveLength(content.length);
    expect(wrong.equals(content)).toBe(false);
    onRead({ kind: 'truncate', afterBytes: 10 });
    await expect(get(cid).then(bytesOf)).rejects.toThrow();
    onRead({ kind: 'slowDrip', chunkBytes: 1, intervalMs: 20 });
    await expect(get(cid, 150).then(bytesOf)).rejects.toThrow();
    onRead({ kind: 'slowDrip', chunkBytes: 200, intervalMs: 5 });
    expect(await bytesOf(await get(cid))).toEqual(content);
    onRead({ kind: 'timeoutBefore', holdMs: 60_000 });
    await expect(get(cid, 100)).rejects.toThrow();
    onRead({ kind: 'dropBefore' });
    await expect(get(cid)).rejects.toThrow();
    bench.net.setFaults({});
    expect(await bytesOf(await get(cid))).toEqual(content);
  });
});
