import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export const STUB_PASSPHRASE = 'Stub Network ; 2026';

export type StubReply =
  | { result: unknown }
  | { error: { code: number; message: string; data?: unknown } }
  | { status: number; headers?: Record<string, string>; body?: string }
  /** Takes the request and never answers. */
  | 'silence'
  /** Cuts the connection. */
  | 'cut';

export interface StubCall {
  method: string;
  params: Record<string, unknown> | undefined;
}

export interface RpcStub {
  url: string;
  calls: StubCall[];
  /** Authorization headers, one a call that had one. */
  authorizations: string[];
  /** Replaces the answers. `getNetwork` and `getHealth` are answered by the stub unless the function does. */
  answer(reply: (call: StubCall) => StubReply | undefined): void;
  callsOf(method: string): StubCall[];
  close(): Promise<void>;
}

/** A JSON-RPC server that says what a test wants it to say. */
export async function startRpcStub(
  initial: (call: StubCall) => StubReply | undefined = () => undefined,
): Promise<RpcStub> {
  let reply = initial;
  const calls: StubCall[] = [];
  const authorizations: string[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const call = JSON.parse(Buffer.concat(chunks).toString()) as StubCall;
      calls.push(call);
      const { authorization } = request.headers;
      if (authorization !== undefined) authorizations.push(authorization);
      const said = reply(call) ?? standard(call);
      if (said === 'silence') return;
      if (said === 'cut') return void request.socket.destroy();
      if ('status' in said) return void response.writeHead(said.status, said.headers).end(said.body ?? '');
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, ...said }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/key-of-a-customer`,
    calls,
    authorizations,
    answer: (next) => (reply = next),
    callsOf: (method) => calls.filter((call) => call.method === method),
    close: () => close(server),
  };
}

function standard({ method }: StubCall): StubReply {
  switch (method) {
    case 'getNetwork':
      return { result: { passphrase: STUB_PASSPHRASE, protocolVersion: '23' } };
    case 'getHealth':
      return {
        result: { status: 'healthy', latestLedger: 1000, oldestLedger: 1, ledgerRetentionWindow: 1000 },
      };
    case 'getLatestLedger':
      return { result: { id: 'aa', protocolVersion: 23, sequence: 1000, closeTime: '1760000000' } };
    default:
      return { error: { code: -32601, message: 'method not found' } };
  }
}

function close(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}
