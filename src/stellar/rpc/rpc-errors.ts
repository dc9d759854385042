import { PermanentError, TransientError } from '../../platform/errors';
import type { Endpoint } from './endpoint';

const INVALID_REQUEST = -32600;
const INVALID_PARAMETERS = -32602;
/** JSON-RPC codes of requests that no node will ever take. That a node has no such method says nothing about the others. */
const REFUSALS = new Set([INVALID_REQUEST, INVALID_PARAMETERS]);

export interface RpcErrorFacts {
  endpoint: string;
  method: string;
  rpcCode: number;
  rpcMessage: string;
}

/** The node refused the request as it stands. */
export class RpcRefusedError extends PermanentError {
  /** Private to the language: loggers print an error's fields, and the endpoint's URL may hold a provider's key. */
  readonly #source: Endpoint;

  constructor(
    readonly facts: RpcErrorFacts,
    source: Endpoint,
  ) {
    super('RPC_REFUSED', `${facts.endpoint} refused ${facts.method}: ${facts.rpcMessage}`, {
      details: { ...facts },
    });
    this.#source = source;
  }

  /** True when it is what we sent that was refused; gateways refuse whole methods as invalid requests. */
  get isOfParameters(): boolean {
    return this.facts.rpcCode === INVALID_PARAMETERS;
  }

  get source(): Endpoint {
    return this.#source;
  }
}

/** The node failed at the request: unhealthy, overloaded by it, or an error of its own. Another may do better. */
export class RpcNodeError extends TransientError {
  constructor(readonly facts: RpcErrorFacts) {
    super('RPC_NODE_ERROR', `${facts.endpoint} failed at ${facts.method}: ${facts.rpcMessage}`, {
      details: { ...facts },
    });
  }
}

export const rpcErrorOf = (facts: RpcErrorFacts, source: Endpoint): RpcRefusedError | RpcNodeError =>
  REFUSALS.has(facts.rpcCode) ? new RpcRefusedError(facts, source) : new RpcNodeError(facts);
