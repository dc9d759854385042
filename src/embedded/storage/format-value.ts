import { Decimal128, Double } from 'mongodb';
import type { Value } from '../bson/values';
import { bsonTypeName, isDocument, ObjectId } from '../bson/values';

/** A value as the server writes it into its error messages. */
export function formatValue(value: Value): string {
  if (typeof value === 'string') return `"${value}"`;
  if (value === null || value === undefined) return 'null';
  if (value instanceof ObjectId) return `ObjectId('${value.toHexString()}')`;
  if (value instanceof Date) return `new Date(${value.getTime()})`;
  if (value instanceof Double) return value.value.toFixed(1);
  if (Array.isArray(value)) return value.length === 0 ? '[]' : `[ ${value.map(formatValue).join(', ')} ]`;
  if (isDocument(value)) {
    const fields = Object.entries(value).map(([name, each]) => `${name}: ${formatValue(each)}`);
    return fields.length === 0 ? '{}' : `{ ${fields.join(', ')} }`;
  }
  if (typeof value !== 'object' || value instanceof Decimal128) return String(value);
  return bsonTypeName(value);
}
