import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createHash } from 'node:crypto';
import { type CidCodec, cidOf } from '../../src/simnet/cid';

export type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** An IPFS gateway on a port of its own, which also answers badly where a test scripts it to. */
export class StubGateway {
  readonly fetches = new Map<string, number>();
  readonly #content = new Map<string, Buffer>();
  readonly #scripts = new Map<string, Answer[]>();
  readonly #server: Server;

  constructor() {
    this.#server = createServer((request, response) => {
      const path = (request.url ?? '').replace(/^\/ipfs\//, '');
      this.fetches.set(path, (this.fetches.get(path) ?? 0) + 1);
      const script = this.#scripts.get(path)?.shift();
      const body = this.#content.get(path);
      if (script !== undefined) script(request, response);
      else if (body === undefined) response.writeHead(404).end();
      else response.writeHead(200, { 'content-length': body.length }).end(body);
    });
  }

  async start(): Promise<this> {
    await new Promise<void>((listening) => this.#server.listen(0, '127.0.0.1', listening));
    return this;
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get baseUrl(): string {
    return `${this.origin}/ipfs`;
  }

  async put(content: Uint8Array | string, codec: CidCodec = 'raw'): Promise<string> {
    const bytes = Buffer.from(content);
    const cid = await cidOf(bytes, codec);
    this.#content.set(cid, bytes);
    return cid;
  }

  /** Serves other bytes under a CID than it names. */
  forge(cid: string, content: string): void {
    this.#content.set(cid, Buffer.from(content));
  }

  /** The next fetch of `path` is answered so; the one after that by the next script, then normally. */
  script(path: string, ...answers: Answer[]): void {
    this.#scripts.set(path, [...(this.#scripts.get(path) ?? []), ...answers]);
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((closed) => this.#server.close(closed));
  }
}

export const status =
  (code: number, headers: Record<string, string> = {}): Answer =>
  (_request, response) =>
    response.writeHead(code, headers).end('scripted');

export const sha256 = (content: string): string => createHash('sha256').update(content).digest('hex');

export interface SampleOptions {
  creator: string;
  media?: string;
  manifest?: Record<string, unknown>;
}

let samples = 0;

/** Puts a media file and its manifest into the gateway; each time another one. */
export async function putSample(
  gateway: StubGateway,
  { creator, media = `media ${process.pid} ${(samples += 1)}`, manifest = {} }: SampleOptions,
) {
  const text = JSON.stringify({ title: 'a photograph', contentHash: sha256(media), creator, ...manifest });
  return {
    mediaCid: await gateway.put(media, 'raw'),
    manifestCid: await gateway.put(text, 'dag-pb-v0'),
    contentHash: sha256(media),
    manifestHash: sha256(text),
  };
}
