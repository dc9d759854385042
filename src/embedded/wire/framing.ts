/** The bytes are not the protocol: what follows on that connection can't be told from noise. */
export class ProtocolError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ProtocolError';
  }
}

export const HEADER_BYTES = 16;
/** What servers announce as maxMessageSizeBytes. */
export const MAX_MESSAGE_BYTES = 48_000_000;

/** Cuts the bytes of a connection into messages, however they were split on the way. */
export class FrameReader {
  #chunks: Buffer[] = [];
  #buffered = 0;

  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#buffered += chunk.length;
  }

  /** @returns the next whole message; undefined when more bytes are needed; @throws ProtocolError */
  next(): Buffer | undefined {
    if (this.#buffered < HEADER_BYTES) return undefined;
    const length = this.#peek(4).readInt32LE(0);
    if (length < HEADER_BYTES || length > MAX_MESSAGE_BYTES) {
      throw new ProtocolError(`a message says it has ${length} bytes`);
    }
    if (this.#buffered < length) return undefined;
    const bytes = this.#peek(length);
    this.#buffered -= length;
    const rest = bytes.subarray(length);
    this.#chunks = rest.length > 0 ? [rest, ...this.#chunks.slice(1)] : this.#chunks.slice(1);
    return bytes.subarray(0, length);
  }

  /** Makes the first chunk at least that long. */
  #peek(length: number): Buffer {
    let [first] = this.#chunks;
    if (first && first.length >= length) return first;
    first = Buffer.concat(this.#chunks);
    this.#chunks = [first];
    return first;
  }
}
