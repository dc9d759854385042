import { createHash } from 'node:crypto';
import { PermanentError, TimeoutError, TransientError } from '../../platform/errors';
import { type ContentId, parseContentId } from './content-id';

/** Stable code of every failed fetch; `details.reason` says which of the causes below it was. */
export const SPV_FETCH_FAILED = 'SPV_FETCH_FAILED';

export type FetchFailureReason =
  | 'invalid_cid'
  | 'gateway_rejected'
  | 'too_large'
  | 'integrity_mismatch'
  | 'timeout'
  | 'unreachable'
  | 'not_found'
  | 'gateway_error'
  | 'empty_body';

export interface FetchedContent {
  /** SHA-256 of the raw bytes, hex. */
  sha256: string;
  sizeBytes: number;
}

export interface IpfsGatewayOptions {
  /** Content is at `<baseUrl>/<cid>`. */
  baseUrl: string;
  /** For one fetch, body included. */
  timeoutMs: number;
  fetch?: typeof fetch;
}

const MAX_REDIRECTS = 3;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);
/** Statuses that a gateway gives while it is still looking for the content, or is overloaded. Every 5xx counts too. */
const RETRYABLE_STATUSES = new Set([404, 408, 425, 429]);

/**
 * Reads content by CID. Nothing is kept beyond the caller's size limit, and nothing is believed where the CID itself
 * tells the hash.
 */
export class IpfsGateway {
  readonly #baseUrl: URL;
  readonly #timeoutMs: number;
  readonly #fetch: typeof fetch;

  constructor(options: IpfsGatewayOptions) {
    this.#baseUrl = new URL(`${options.baseUrl.replace(/\/+$/, '')}/`);
    this.#timeoutMs = options.timeoutMs;
    this.#fetch = options.fetch ?? fetch;
  }

  /** Hashes the content as it streams by; memory use doesn't depend on its size. */
  async hash(cid: string, maxBytes: number, signal: AbortSignal): Promise<FetchedContent> {
    return this.#stream(cid, maxBytes, signal, () => undefined);
  }

  /** @returns the whole content, `maxBytes` at most. */
  async read(
    cid: string,
    maxBytes: number,
    signal: AbortSignal,
  ): Promise<FetchedContent & { bytes: Uint8Array }> {
    const chunks: Uint8Array[] = [];
    const fetched = await this.#stream(cid, maxBytes, signal, (chunk) => chunks.push(chunk));
    return { ...fetched, bytes: Buffer.concat(chunks) };
  }

  async #stream(
    cid: string,
    maxBytes: number,
    signal: AbortSignal,
    onChunk: (chunk: Uint8Array) => void,
  ): Promise<FetchedContent> {
    const contentId = await parseContentId(cid);
    if (contentId === null) throw permanent('invalid_cid', 'the CID is malformed', { cid });

    const deadline = AbortSignal.timeout(this.#timeoutMs);
    const either = AbortSignal.any([signal, deadline]);
    try {
      const response = await this.#open(contentId, either);
      const declared = Number(response.headers.get('content-length') ?? 0);
      if (declared > maxBytes) {
        await response.body?.cancel();
        throw tooLarge(contentId, maxBytes);
      }
      const fetched = await digestBody(response, contentId, maxBytes, onChunk);
      if (contentId.contentSha256 !== null && contentId.contentSha256 !== fetched.sha256) {
        throw permanent('integrity_mismatch', 'the gateway sent other bytes than the CID names', { cid });
      }
      return fetched;
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof PermanentError || error instanceof TransientError) throw error;
      if (deadline.aborted) {
        throw new TimeoutError(
          SPV_FETCH_FAILED,
          `the gateway did not deliver ${cid} within ${this.#timeoutMs} ms`,
          { cause: error, details: { reason: 'timeout' satisfies FetchFailureReason, cid } },
        );
      }
      throw transient('unreachable', 'the connection to the gateway failed', { cid }, { cause: error });
    }
  }

  /**
   * Follows redirects by hand: a gateway may move content about within its own origin, but it must not send us
   * anywhere else, least of all into the network that this process stands in.
   */
  async #open(contentId: ContentId, signal: AbortSignal): Promise<Response> {
    const cid = contentId.text;
    let url = new URL(cid, this.#baseUrl);
    for (let hops = 0; hops <= MAX_REDIRECTS; hops += 1) {
      const response = await this.#fetch(url, { redirect: 'manual', signal });
      if (response.ok) return response;
      await response.body?.cancel();

      const { status } = response;
      const details = { cid, status };
      if (REDIRECTS.has(status)) {
        const location = response.headers.get('location') ?? '';
        const target = URL.canParse(location, url.href) ? new URL(location, url) : null;
        if (target?.origin !== this.#baseUrl.origin) {
          throw permanent('gateway_rejected', 'the gateway redirects to another origin', details);
        }
        url = target;
        continue;
      }
      if (RETRYABLE_STATUSES.has(status) || status >= 500) {
        const reason = status === 404 ? 'not_found' : 'gateway_error';
        throw transient(reason, `the gateway answered ${status}`, details, {
          ...retryAfter(response.headers.get('retry-after')),
        });
      }
      throw permanent('gateway_rejected', `the gateway answered ${status}`, details);
    }
    throw permanent('gateway_rejected', 'the gateway redirects without end', { cid });
  }
}

async function digestBody(
  response: Response,
  contentId: ContentId,
  maxBytes: number,
  onChunk: (chunk: Uint8Array) => void,
): Promise<FetchedContent> {
  const hash = createHash('sha256');
  let sizeBytes = 0;
  // Leaving the loop by an exception cancels the body, so an oversized one is not read to its end.
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    sizeBytes += chunk.byteLength;
    if (sizeBytes > maxBytes) throw tooLarge(contentId, maxBytes);
    hash.update(chunk);
    onChunk(chunk);
  }
  if (sizeBytes === 0)
    throw transient('empty_body', 'the gateway sent an empty body', { cid: contentId.text });
  return { sha256: hash.digest('hex'), sizeBytes };
}

/** A gateway that asks for more would put a request out of sight; it is asked again after an hour. */
const MAX_RETRY_AFTER_MS = 3_600_000;

/** Only the form in seconds: a date would be judged by a clock that isn't ours. */
function retryAfter(header: string | null): { retryAfterMs?: number } {
  if (header === null || !/^\d{1,9}$/.test(header)) return {};
  return { retryAfterMs: Math.min(Number(header) * 1000, MAX_RETRY_AFTER_MS) };
}

const tooLarge = (contentId: ContentId, maxBytes: number): PermanentError =>
  permanent('too_large', `the content is larger than ${maxBytes} bytes`, { cid: contentId.text });

function permanent(
  reason: FetchFailureReason,
  message: string,
  details: Record<string, unknown>,
): PermanentError {
  return new PermanentError(SPV_FETCH_FAILED, message, { details: { reason, ...details } });
}

function transient(
  reason: FetchFailureReason,
  message: string,
  details: Record<string, unknown>,
  options: { cause?: unknown; retryAfterMs?: number } = {},
): TransientError {
  return new TransientError(SPV_FETCH_FAILED, message, { ...options, details: { reason, ...details } });
}
