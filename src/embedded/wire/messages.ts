import { decodeDocument, MalformedBsonError } from '../bson/decode';
import type { Encodable } from '../bson/encode';
import { BsonWriter } from '../bson/encode';
import { putField } from '../bson/field-order';
import type { Document, Value } from '../bson/values';
import { crc32c } from './crc32c';
import { HEADER_BYTES, ProtocolError } from './framing';

const OP_REPLY = 1;
const OP_QUERY = 2004;
const OP_MSG = 2013;

const CHECKSUM_PRESENT = 1 << 0;
const MORE_TO_COME = 1 << 1;
/** Of the lower bits, those that a receiver may not ignore, all but these two are unknown. */
const UNKNOWN_REQUIRED_BITS = 0xffff & ~(CHECKSUM_PRESENT | MORE_TO_COME);

export interface IncomingMessage {
  readonly requestId: number;
  /** The legacy message is the first one of a handshake, and gets a legacy reply. */
  readonly legacy: boolean;
  /** The sender won't read a reply. */
  readonly unacknowledged: boolean;
  readonly body: Document;
}

function cstringEnd(bytes: Buffer, from: number): number {
  const end = bytes.indexOf(0, from);
  if (end < 0) throw new ProtocolError('a name is not terminated');
  return end;
}

function readSequence(
  bytes: Buffer,
  start: number,
  end: number,
): { name: string; documents: Value[]; next: number } {
  const length = bytes.readInt32LE(start);
  const next = start + length;
  if (length < 5 || next > end) throw new ProtocolError(`a section says it has ${length} bytes`);
  const nameEnd = cstringEnd(bytes, start + 4);
  const name = bytes.toString('utf8', start + 4, nameEnd);
  const documents: Value[] = [];
  let at = nameEnd + 1;
  while (at < next) {
    const decoded = decodeDocument(bytes, at);
    documents.push(decoded.document);
    at = decoded.end;
  }
  if (at !== next) throw new ProtocolError('a section does not end where its length says');
  return { name, documents, next };
}

function readMessage(bytes: Buffer): IncomingMessage {
  const flags = bytes.readUInt32LE(HEADER_BYTES);
  if ((flags & UNKNOWN_REQUIRED_BITS) !== 0)
    throw new ProtocolError(`flags 0x${flags.toString(16)} are not known`);
  let end = bytes.length;
  if ((flags & CHECKSUM_PRESENT) !== 0) {
    end -= 4;
    if (bytes.readUInt32LE(end) !== crc32c(bytes.subarray(0, end)))
      throw new ProtocolError('the checksum is wrong');
  }
  let body: Document | undefined;
  const sequences: { name: string; documents: Value[] }[] = [];
  let at = HEADER_BYTES + 4;
  while (at < end) {
    const kind = bytes[at++];
    if (kind === 0) {
      if (body) throw new ProtocolError('a message has two bodies');
      const decoded = decodeDocument(bytes, at);
      body = decoded.document;
      at = decoded.end;
    } else if (kind === 1) {
      const sequence = readSequence(bytes, at, end);
      sequences.push(sequence);
      at = sequence.next;
    } else {
      throw new ProtocolError(`section kind ${String(kind)} is not known`);
    }
  }
  if (!body || at !== end)
    throw new ProtocolError('a message has no body, or does not end where its length says');
  for (const { name, documents } of sequences) {
    if (Object.hasOwn(body, name)) throw new ProtocolError(`'${name}' is in a message twice`);
    putField(body, name, documents);
  }
  return {
    requestId: bytes.readInt32LE(4),
    legacy: false,
    unacknowledged: (flags & MORE_TO_COME) !== 0,
    body,
  };
}

function readLegacyQuery(bytes: Buffer): IncomingMessage {
  const nameEnd = cstringEnd(bytes, HEADER_BYTES + 4);
  const namespace = bytes.toString('utf8', HEADER_BYTES + 4, nameEnd);
  if (!namespace.endsWith('.$cmd')) throw new ProtocolError('OP_QUERY is for the handshake alone');
  const { document, end } = decodeDocument(bytes, nameEnd + 1 + 8);
  if (end > bytes.length) throw new ProtocolError('a query does not end where its length says');
  const inner = document.$query;
  const body = typeof inner === 'object' && inner !== null ? (inner as Document) : document;
  return {
    requestId: bytes.readInt32LE(4),
    legacy: true,
    unacknowledged: false,
    body: { ...body, $db: namespace.slice(0, -'.$cmd'.length) },
  };
}

/** @throws ProtocolError when the bytes are no message that is spoken here */
export function parseMessage(bytes: Buffer): IncomingMessage {
  const opcode = bytes.readInt32LE(12);
  try {
    if (opcode === OP_MSG) return readMessage(bytes);
    if (opcode === OP_QUERY) return readLegacyQuery(bytes);
  } catch (error) {
    if (error instanceof ProtocolError) throw error;
    if (error instanceof MalformedBsonError) throw new ProtocolError(`malformed BSON: ${error.message}`);
    // Reading past the end of the message is the only other thing that can go wrong.
    throw new ProtocolError(`a message is shorter than its parts: ${String(error)}`);
  }
  throw new ProtocolError(`opcode ${opcode} is not known`);
}

let lastRequestId = 0;

/** The bytes of a reply, in the form that the message asks for. */
export function encodeReply(
  message: IncomingMessage,
  reply: { readonly [field: string]: Encodable },
): Buffer {
  const writer = new BsonWriter();
  lastRequestId = (lastRequestId + 1) & 0x7fffffff;
  writer.int32(0);
  writer.int32(lastRequestId);
  writer.int32(message.requestId);
  writer.int32(message.legacy ? OP_REPLY : OP_MSG);
  writer.int32(0);
  if (message.legacy) {
    // Cursor id, starting position, number of documents.
    writer.int32(0);
    writer.int32(0);
    writer.int32(0);
    writer.int32(1);
  } else {
    writer.byte(0);
  }
  writer.document(reply);
  writer.setInt32(writer.length, 0);
  return writer.view();
}
