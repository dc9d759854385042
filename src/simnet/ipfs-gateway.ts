import type { IncomingMessage, ServerResponse } from 'node:http';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { CidCodec } from './cid';
import { cidOf } from './cid';
import type { CallFault } from './fault-rules';
import { holdAndCut, readBody, sendInjectedStatus, sendJson } from './http-server';

const flipFirstBit = (bytes: Buffer): Buffer => {
  const wrong = Buffer.from(bytes.length > 0 ? bytes : [0]);
  wrong[0] = (wrong[0] ?? 0) ^ 0x80;
  return wrong;
};

/** Serves what was put in under its CID, and nothing else. */
export class IpfsGateway {
  private readonly content = new Map<string, Buffer>();

  constructor(private readonly fault: (cid: string) => CallFault | undefined) {}

  async put(bytes: Uint8Array, { codec = 'raw' }: { codec?: CidCodec } = {}): Promise<string> {
    const cid = await cidOf(bytes, codec);
    this.content.set(cid, Buffer.from(bytes));
    return cid;
  }

  remove(cid: string): void {
    this.content.delete(cid);
  }

  /** `GET /ipfs/{cid}`, and `POST` or `PUT /ipfs?codec=raw|dag-pb-v0` with the bytes as the body. */
  async serve(url: URL, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method === 'POST' || request.method === 'PUT') {
      const codec = url.searchParams.get('codec') === 'dag-pb-v0' ? 'dag-pb-v0' : 'raw';
      sendJson(response, 201, { cid: await this.put(await readBody(request), { codec }) });
      return;
    }
    const cid = url.pathname.replace(/^\/ipfs\//, '');
    const bytes = this.content.get(cid);
    await this.answer(cid, bytes, this.fault(cid), request, response);
  }

  private async answer(
    cid: string,
    bytes: Buffer | undefined,
    fault: CallFault | undefined,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    switch (fault?.kind) {
      case 'latency':
        await delay(fault.ms);
        break;
      case 'timeoutBefore':
      case 'timeoutAfter':
        return holdAndCut(request, fault.holdMs);
      case 'dropBefore':
      case 'dropReply':
        request.socket.destroy();
        return;
      case 'httpStatus':
        sendInjectedStatus(response, fault);
        return;
      default:
    }
    if (!bytes) {
      response.writeHead(404, { 'content-type': 'text/plain' }).end(`no content for ${cid}`);
      return;
    }
    const body = fault?.kind === 'wrongBytes' ? flipFirstBit(bytes) : bytes;
    response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': body.length });
    if (fault?.kind === 'truncate') {
      // The length that was promised is not delivered: the connection ends early.
      await new Promise((written) => response.write(body.subarray(0, fault.afterBytes), written));
      request.socket.destroy();
    } else if (fault?.kind === 'slowDrip') {
      await drip(body, fault.chunkBytes, fault.intervalMs, response);
    } else {
      response.end(body);
    }
  }
}

const drip = async (
  body: Buffer,
  chunkBytes: number,
  intervalMs: number,
  response: ServerResponse,
): Promise<void> => {
  for (let offset = 0; offset < body.length && !response.destroyed; offset += chunkBytes) {
    if (!response.write(body.subarray(offset, offset + chunkBytes))) {
      await Promise.race([once(response, 'drain'), once(response, 'close')]);
    }
    await delay(intervalMs, undefined, { ref: false });
  }
  response.end();
};
