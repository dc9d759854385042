import { z } from 'zod';
import { TimeoutError, TransientError } from '../../platform/errors';

export type JsonRpcReply =
  | { kind: 'result'; result: unknown }
  /** The node understood and said no: never the endpoint's fault. */
  | { kind: 'error'; code: number; message: string; data?: unknown };

export interface JsonRpcCall {
  url: string;
  method: string;
  params?: Record<string, unknown>;
  timeoutMs: number;
  signal: AbortSignal;
}

const replySchema = z.union([
  z.object({ error: z.object({ code: z.number(), message: z.string(), data: z.unknown().optional() }) }),
  z.object({ result: z.unknown().refine((value) => value !== undefined) }),
]);

/** Far above a full page of events, far below what would harm the process. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
/** A wish to be left alone for longer is taken for a mistake. */
const MAX_RETRY_AFTER_MS = 60_000;

/** Scheme, host and port: providers put keys in paths and queries. */
export const originOf = (url: string): string => new URL(url).origin;

/**
 * One POST, one answer. Aborting `signal` rejects with its reason.
 * @throws TransientError or TimeoutError (RPC_…) for every way the answer can fail to arrive whole.
 */
export async function callJsonRpc(call: JsonRpcCall): Promise<JsonRpcReply> {
  call.signal.throwIfAborted();
  const request = new AbortController();
  const forward = (): void => request.abort();
  call.signal.addEventListener('abort', forward, { once: true });
  const deadline = Symbol('deadline');
  const timer = setTimeout(() => request.abort(deadline), call.timeoutMs);
  const endpoint = originOf(call.url);
  const details = { endpoint, method: call.method };
  let response: Response;
  let text: string | null;
  try {
    response = await fetch(
      ...targetOf(call.url, {
        method: 'POST',
        body: JSON.stringify({
          jsonrpc: '2.0',
          id: 1,
          method: call.method,
          ...(call.params && { params: call.params }),
        }),
        signal: request.signal,
        // A redirect could lead a request with an account's data anywhere.
        redirect: 'error',
      }),
    );
    text = await readText(response, request);
  } catch (cause) {
    call.signal.throwIfAborted();
    if (request.signal.reason === deadline) {
      throw new TimeoutError('RPC_TIMEOUT', `${endpoint} gave no answer in ${call.timeoutMs} ms`, {
        details,
      });
    }
    // The cause of undici's "fetch failed" holds codes, never the URL's path.
    throw new TransientError('RPC_UNREACHABLE', `${endpoint} can't be reached`, { cause, details });
  } finally {
    clearTimeout(timer);
    // By hand rather than by AbortSignal.any, whose links outlive the call on a signal as old as the process.
    call.signal.removeEventListener('abort', forward);
  }
  if (text === null) {
    throw new TransientError('RPC_INVALID_RESPONSE', `${endpoint} answered without end`, { details });
  }
  return readReply(response, text, endpoint, details);
}

/** `fetch` refuses a URL with a password in it, quoting it: the password travels in a header of its own. */
function targetOf(address: string, init: RequestInit): [URL, RequestInit] {
  const url = new URL(address);
  const headers = new Headers({ 'content-type': 'application/json', accept: 'application/json' });
  if (url.username !== '' || url.password !== '') {
    const credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
    headers.set('authorization', `Basic ${Buffer.from(credentials).toString('base64')}`);
    url.username = '';
    url.password = '';
  }
  return [url, { ...init, headers }];
}

/** Null when there is no end to it. */
async function readText(response: Response, request: AbortController): Promise<string | null> {
  if (response.body === null) return '';
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body as ReadableStream<Uint8Array>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > MAX_ANSWER_BYTES) {
      request.abort();
      return null;
    }
  }
  return Buffer.concat(chunks).toString('utf8');
}

function readReply(
  response: Response,
  text: string,
  endpoint: string,
  details: Record<string, unknown>,
): JsonRpcReply {
  const { status } = response;
  const retryAfterMs = parseRetryAfter(response.headers.get('retry-after'));
  const wish = retryAfterMs === undefined ? {} : { retryAfterMs };
  if (status === 429) {
    throw new TransientError('RPC_RATE_LIMITED', `${endpoint} asks to slow down`, {
      ...wish,
      details: { ...details, status },
    });
  }
  if (status >= 500) {
    throw new TransientError('RPC_UNAVAILABLE', `${endpoint} answered ${status}`, {
      ...wish,
      details: { ...details, status },
    });
  }
  const parsed = replySchema.safeParse(parseJson(text));
  if (!parsed.success) {
    throw new TransientError(
      'RPC_INVALID_RESPONSE',
      `${endpoint} answered ${status} with no JSON-RPC reply`,
      {
        details: { ...details, status },
      },
    );
  }
  const reply = parsed.data;
  if ('error' in reply) return { kind: 'error', ...reply.error };
  return { kind: 'result', result: reply.result };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Seconds or an HTTP date, as milliseconds from now. */
function parseRetryAfter(header: string | null): number | undefined {
  if (header === null) return undefined;
  if (/^\d+$/.test(header.trim())) return Math.min(MAX_RETRY_AFTER_MS, Number(header) * 1000);
  const at = Date.parse(header);
  return Number.isNaN(at) ? undefined : Math.min(MAX_RETRY_AFTER_MS, Math.max(0, at - Date.now()));
}
