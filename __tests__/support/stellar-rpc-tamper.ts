import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { z } from 'zod';
import type { StubCall } from './stellar-rpc-stub';

type Result = Record<string, unknown>;
/** Changes the node's answer in place or gives another; a promise holds it back, `null` cuts the connection. */
export type Tampering = (call: StubCall, result: Result) => Result | null | Promise<Result | null>;

const replySchema = z.object({ result: z.record(z.string(), z.unknown()).optional() }).loose();

export interface LyingEndpoint {
  url: string;
  tamper(how: Tampering): void;
  close(): Promise<void>;
}

/** A node that does what the one behind it does, and says what the test wants it to say. */
export async function startLyingEndpoint(target: string): Promise<LyingEndpoint> {
  let how: Tampering = (_call, result) => result;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      void answer(Buffer.concat(chunks).toString()).then((text) => {
        if (text === null) request.socket.destroy();
        else response.writeHead(200, { 'content-type': 'application/json' }).end(text);
      });
    });
  });
  const answer = async (body: string): Promise<string | null> => {
    const response = await fetch(target, { method: 'POST', body });
    const reply = replySchema.parse(await response.json());
    if (reply.result === undefined) return JSON.stringify(reply);
    const result = await how(JSON.parse(body) as StubCall, reply.result);
    return result === null ? null : JSON.stringify({ ...reply, result });
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    tamper: (next) => (how = next),
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
