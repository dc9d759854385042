import type { CallFault } from '../fault-rules';
import type { Ledger } from '../ledger';
import type { SimnetStats } from '../stats';
import type { MetaVersion } from '../transaction-meta';
import type { EndpointView } from './endpoint-view';

/** What a JSON-RPC method works with: the one ledger, seen through one endpoint. */
export interface RpcContext {
  ledger: Ledger;
  view: EndpointView;
  stats: SimnetStats;
  networkPassphrase: string;
  friendbotUrl: string;
  metaVersion: MetaVersion;
  /** An answer that a fault rule has decided on, for sendTransaction. */
  injected?: Extract<CallFault, { kind: 'tryAgainLater' | 'sendError' }>;
}

export type RpcMethod = (params: unknown, context: RpcContext) => unknown;

export const protocolVersion = 23;

export const rpcErrorCodes = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
} as const;

/** Ends a call with a JSON-RPC error. */
export class RpcFailure extends Error {
  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message);
    this.name = 'RpcFailure';
  }
}

export const invalidParams = (message: string): RpcFailure =>
  new RpcFailure(rpcErrorCodes.invalidParams, message);
