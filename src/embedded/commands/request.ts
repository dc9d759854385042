import type { Encodable } from '../bson/encode';
import type { Document, Value } from '../bson/values';
import { isDocument, isNumeric, toNumber } from '../bson/values';
import type { CursorRegistry } from '../cursors';
import { OpenCursor } from '../cursors';
import { badValue, CommandError, typeMismatch } from '../errors';
import type { FailPoints } from '../fail-points';
import type { Scope } from '../scope';
import type { Namespace, Store } from '../storage/store';

/** What commands work on. */
export interface Engine {
  readonly store: Store;
  readonly cursors: CursorRegistry;
  readonly failPoints: FailPoints;
  readonly startedAtMs: number;
  readonly commandCounts: Map<string, number>;
  readonly openConnections: () => number;
}

export interface Request {
  readonly engine: Engine;
  readonly db: string;
  /** The command's name, which is also the first field of its body. */
  readonly name: string;
  readonly body: Document;
  readonly scope: Scope;
  readonly connectionId: number;
}

export type Reply = { [field: string]: Encodable };

export type Command = (request: Request) => Reply;

/** @throws CommandError when the command's first field names no collection */
export function namespaceIn({ db, name, body }: Request): Namespace {
  const collection = body[name];
  if (typeof collection !== 'string') {
    throw new CommandError(73, `collection name has invalid type ${typeof collection}`);
  }
  if (collection === '' || collection.startsWith('.') || /[\0$]/.test(collection)) {
    throw new CommandError(73, `Invalid namespace specified '${db}.${collection}'`);
  }
  return { db, collection };
}

export function documentIn(body: Document, name: string): Document {
  const value = body[name];
  if (value === undefined || value === null) return {};
  if (!isDocument(value))
    throw typeMismatch(`BSON field '${name}' is the wrong type, expected type 'object'`);
  return value;
}

export function optionalDocumentIn(body: Document, name: string): Document | undefined {
  return body[name] === undefined ? undefined : documentIn(body, name);
}

export function documentsIn(body: Document, name: string): Document[] {
  const value = body[name];
  if (!Array.isArray(value) || !value.every(isDocument)) {
    throw typeMismatch(`BSON field '${name}' is missing or not an array of objects`);
  }
  return value;
}

export function valuesIn(body: Document, name: string): Value[] {
  const value = body[name];
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value))
    throw typeMismatch(`BSON field '${name}' is the wrong type, expected type 'array'`);
  return value;
}

export function wholeNumberIn(body: Document, name: string, fallback: number): number {
  const value = body[name];
  if (value === undefined || value === null) return fallback;
  if (!isNumeric(value)) throw typeMismatch(`BSON field '${name}' is the wrong type, expected a number`);
  const number = Math.trunc(toNumber(value));
  if (number < 0)
    throw new CommandError(51024, `BSON field '${name}' value must be >= 0, actual value '${number}'`);
  return number;
}

export function flagIn(body: Document, name: string): boolean {
  const value = body[name];
  return value === true || (isNumeric(value) && toNumber(value) !== 0);
}

export const DEFAULT_FIRST_BATCH = 101;

interface CursorOptions {
  readonly batchSize: number;
  readonly singleBatch: boolean;
}

/** The first batch, and an open cursor for the rest if there is any. */
export function cursorReply(
  { engine }: Request,
  namespace: string,
  documents: Iterable<Document>,
  { batchSize, singleBatch }: CursorOptions,
): Reply {
  const cursor = new OpenCursor(namespace, documents);
  const firstBatch = cursor.nextBatch(batchSize);
  const id = singleBatch || cursor.isExhausted ? 0n : engine.cursors.add(cursor);
  return { cursor: { firstBatch, id, ns: namespace }, ok: 1 };
}

/** The database and collection that `db.collection` names. */
export function parseNamespace(value: Value): Namespace {
  const text = typeof value === 'string' ? value : '';
  const dot = text.indexOf('.');
  if (dot <= 0 || dot === text.length - 1) throw badValue(`Invalid namespace specified '${text}'`);
  return { db: text.slice(0, dot), collection: text.slice(dot + 1) };
}
