import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import type { CallFault } from '../fault-rules';
import { holdAndCut, readBody, sendInjectedStatus, sendJson } from '../http-server';
import { getEvents } from './get-events';
import { getFeeStats } from './get-fee-stats';
import { getLedgerEntries } from './get-ledger-entries';
import { getTransaction } from './get-transaction';
import { getTransactions } from './get-transactions';
import { getHealth, getLatestLedger, getLedgers, getNetwork, getVersionInfo } from './network-info';
import type { RpcContext, RpcMethod } from './rpc-context';
import { RpcFailure, rpcErrorCodes } from './rpc-context';
import { sendTransaction } from './send-transaction';
import { simulateTransaction } from './simulate-transaction';

const methods: Record<string, RpcMethod> = {
  getEvents,
  getFeeStats,
  getHealth,
  getLatestLedger,
  getLedgerEntries,
  getLedgers,
  getNetwork,
  getTransaction,
  getTransactions,
  getVersionInfo,
  sendTransaction,
  simulateTransaction,
};

const requestSchema = z.object({
  jsonrpc: z.literal('2.0'),
  id: z.union([z.string(), z.number(), z.null()]).optional(),
  method: z.string(),
  params: z.unknown().optional(),
});
type RpcRequest = z.infer<typeof requestSchema>;

const parseRequest = (body: Buffer): RpcRequest | undefined => {
  try {
    return requestSchema.parse(JSON.parse(body.toString('utf8')));
  } catch {
    return undefined;
  }
};

const answer = (request: RpcRequest, context: RpcContext, injected: CallFault | undefined): object => {
  const reply = { jsonrpc: '2.0', id: request.id ?? null };
  try {
    const method = methods[request.method];
    if (!method) throw new RpcFailure(rpcErrorCodes.methodNotFound, 'method not found');
    if (injected?.kind === 'rpcError') throw new RpcFailure(injected.code, injected.message);
    if (injected?.kind === 'unhealthy' && request.method === 'getHealth') {
      throw new RpcFailure(
        rpcErrorCodes.internal,
        'latency (35s) since last known ledger closed is too high (>30s)',
      );
    }
    const isSendAnswer = injected?.kind === 'tryAgainLater' || injected?.kind === 'sendError';
    return { ...reply, result: method(request.params, { ...context, ...(isSendAnswer && { injected }) }) };
  } catch (error) {
    if (error instanceof RpcFailure) return { ...reply, error: { code: error.code, message: error.message } };
    const message = error instanceof Error ? error.message : String(error);
    return { ...reply, error: { code: rpcErrorCodes.internal, message } };
  }
};

export interface RpcEndpoint {
  /** Asked for each call: conditions may change between two. */
  context(): RpcContext;
  fault(method: string): CallFault | undefined;
}

/** Serves one JSON-RPC request, with whatever goes wrong on its way. */
export const serveRpc = async (
  endpoint: RpcEndpoint,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> => {
  const rpcRequest = parseRequest(await readBody(request));
  if (!rpcRequest) {
    sendJson(response, 200, {
      jsonrpc: '2.0',
      id: null,
      error: { code: rpcErrorCodes.parse, message: 'parse error' },
    });
    return;
  }
  const fault = endpoint.fault(rpcRequest.method);
  const handle = (): object => {
    const context = endpoint.context();
    context.stats.countCall(rpcRequest.method);
    return answer(rpcRequest, context, fault);
  };
  switch (fault?.kind) {
    case 'latency':
      await delay(fault.ms);
      break;
    case 'timeoutBefore':
      return holdAndCut(request, fault.holdMs);
    case 'timeoutAfter':
      handle();
      return holdAndCut(request, fault.holdMs);
    case 'dropBefore':
      request.socket.destroy();
      return;
    case 'dropReply':
      handle();
      request.socket.destroy();
      return;
    case 'httpStatus':
      sendInjectedStatus(response, fault);
      return;
    default:
  }
  sendJson(response, 200, handle());
};
