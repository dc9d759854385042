import type { EncodedDocument } from './bson/encode';
import { encodeDocument } from './bson/encode';
import type { Document } from './bson/values';
import { CommandError } from './errors';

/** A reply holds no more than this of documents, except for one that is larger alone. */
const MAX_BATCH_BYTES = 16 * 1024 * 1024;
const IDLE_TIMEOUT_MS = 10 * 60 * 1000;

/** The rest of a result, handed out batch by batch. */
export class OpenCursor {
  usedAtMs = Date.now();
  /** What it reads is gone. */
  killed = false;
  #ahead: EncodedDocument | undefined;
  readonly #documents: Iterator<Document>;

  constructor(
    readonly namespace: string,
    documents: Iterable<Document>,
  ) {
    this.#documents = documents[Symbol.iterator]();
  }

  /** @param size how many documents at most; Infinity for as many as fit */
  nextBatch(size: number): EncodedDocument[] {
    this.usedAtMs = Date.now();
    const batch: EncodedDocument[] = [];
    let bytes = 0;
    while (batch.length < size) {
      const document = this.#peek();
      if (!document || (batch.length > 0 && bytes + document.bytes.length > MAX_BATCH_BYTES)) break;
      bytes += document.bytes.length;
      batch.push(document);
      this.#ahead = undefined;
    }
    return batch;
  }

  get isExhausted(): boolean {
    return this.#peek() === undefined;
  }

  #peek(): EncodedDocument | undefined {
    if (!this.#ahead) {
      const next = this.#documents.next();
      if (next.done !== true) this.#ahead = encodeDocument(next.value);
    }
    return this.#ahead;
  }
}

export class CursorRegistry {
  readonly #cursors = new Map<bigint, OpenCursor>();
  #lastId = BigInt(Date.now()) << 20n;

  get size(): number {
    return this.#cursors.size;
  }

  add(cursor: OpenCursor): bigint {
    this.#closeIdle();
    const id = ++this.#lastId;
    this.#cursors.set(id, cursor);
    return id;
  }

  /** @throws CommandError 43 */
  get(id: bigint, namespace: string): OpenCursor {
    const cursor = this.#cursors.get(id);
    if (!cursor) throw new CommandError(43, `cursor id ${id} not found`);
    if (cursor.namespace !== namespace) {
      throw new CommandError(
        13,
        `Requested getMore on namespace '${namespace}', but cursor belongs to a different namespace ${cursor.namespace}`,
      );
    }
    if (cursor.killed) {
      this.#cursors.delete(id);
      throw new CommandError(175, `collection dropped. UUID of ${namespace} is no longer known`);
    }
    return cursor;
  }

  /** The cursors over a collection that is no more, or over all of a database, end when they are asked for more. */
  kill(gone: (namespace: string) => boolean): void {
    for (const cursor of this.#cursors.values()) cursor.killed ||= gone(cursor.namespace);
  }

  close(id: bigint): boolean {
    return this.#cursors.delete(id);
  }

  #closeIdle(): void {
    const limitMs = Date.now() - IDLE_TIMEOUT_MS;
    // In the order they were opened, so that looking at the first few is enough to keep the number bounded.
    let looked = 0;
    for (const [id, cursor] of this.#cursors) {
      if (cursor.usedAtMs < limitMs) this.#cursors.delete(id);
      if (++looked >= 16) return;
    }
  }
}
