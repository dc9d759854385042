import { Binary, BSONRegExp } from 'mongodb';
import { withIdFirst } from '../bson/field-order';
import type { Document, Value } from '../bson/values';
import { bsonTypeName, field, isDocument, ObjectId } from '../bson/values';
import { badValue, CommandError } from '../errors';

const MAX_DOCUMENT_BYTES = 16 * 1024 * 1024;

/** A rough size, from below: enough to refuse what could never be sent back, without encoding all that is stored. */
function leastBytesOf(value: Value): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 1;
  if (value instanceof Binary) return value.length();
  let bytes = 5;
  if (Array.isArray(value)) for (const each of value) bytes += 3 + leastBytesOf(each);
  else if (isDocument(value)) for (const name in value) bytes += name.length + 2 + leastBytesOf(value[name]);
  return bytes;
}

/** @throws CommandError when it can't be stored */
export function requireStorable(document: Document): void {
  const id = field(document, '_id');
  if (Array.isArray(id) || id instanceof BSONRegExp) {
    throw badValue(`The '_id' value cannot be of type ${bsonTypeName(id)}`);
  }
  if (isDocument(id)) {
    const name = Object.keys(id).find((each) => each.startsWith('$'));
    if (name !== undefined)
      throw new CommandError(
        52,
        `_id fields may not contain '$'-prefixed fields: ${name} is not valid for storage.`,
      );
  }
  if (leastBytesOf(document) > MAX_DOCUMENT_BYTES) {
    throw new CommandError(10334, 'BSONObj exceeds maximum nested object size: 16777216');
  }
}

/** The document as it is stored: with an `_id`, and that first. */
export function withId(document: Document): Document {
  const id = field(document, '_id');
  return withIdFirst(document, id === undefined ? ObjectId.generate() : id);
}
