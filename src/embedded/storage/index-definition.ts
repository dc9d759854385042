import { keyOf } from '../bson/compare';
import { entriesOf } from '../bson/field-order';
import type { Document, Value } from '../bson/values';
import { isDocument, isNumeric, toNumber } from '../bson/values';
import { CommandError, typeMismatch } from '../errors';
import { formatValue } from './format-value';
import { requirePartialFilter } from './partial-filter';

export interface KeyPart {
  readonly path: string;
  readonly direction: 1 | -1;
}

/** An index as it was asked for, checked. */
export interface IndexDefinition {
  readonly name: string;
  readonly key: Document;
  readonly parts: readonly KeyPart[];
  readonly unique: boolean;
  readonly sparse: boolean;
  readonly hidden: boolean;
  readonly partialFilter: Document | undefined;
  readonly expireAfterSeconds: number | undefined;
  /** What `listIndexes` tells. */
  readonly spec: Document;
}

/** Seconds are kept as an int32. */
const MAX_EXPIRE_AFTER_SECONDS = 2_147_483_647;

const KNOWN_OPTIONS = new Set([
  'v',
  'key',
  'name',
  'ns',
  'background',
  'unique',
  'sparse',
  'hidden',
  'partialFilterExpression',
  'expireAfterSeconds',
  'storageEngine',
  'comment',
  'commitQuorum',
]);

function keyPartsOf(key: Document): KeyPart[] {
  const parts = entriesOf(key).map(([path, how]): KeyPart => {
    if (path === '' || path.startsWith('$') || path.split('.').includes('')) {
      throw new CommandError(67, `Index key contains an illegal field name: '${path}'.`);
    }
    if (path.includes('$**')) throw new CommandError(67, 'wildcard indexes are not supported here');
    if (how === 'hashed') return { path, direction: 1 };
    if (typeof how === 'string') throw new CommandError(67, `'${how}' indexes are not supported here`);
    const direction = isNumeric(how) ? toNumber(how) : 0;
    if (!direction) {
      throw new CommandError(67, `Values in v:2 index key pattern cannot be 0 or of this type: ${path}`);
    }
    return { path, direction: direction < 0 ? -1 : 1 };
  });
  if (parts.length === 0) throw new CommandError(67, 'Index keys cannot be an empty object');
  return parts;
}

const isTrue = (value: Value): boolean => value === true || (isNumeric(value) && toNumber(value) !== 0);

/** @throws CommandError for a specification that no server takes, or that this one can't serve */
export function parseIndexDefinition(spec: Document): IndexDefinition {
  const { key, name } = spec;
  if (!isDocument(key))
    throw new CommandError(9, "The 'key' field is a required property of an index specification");
  if (typeof name !== 'string' || name === '') {
    throw new CommandError(9, "The 'name' field is a required property of an index specification");
  }
  const unknown = Object.keys(spec).find((option) => !KNOWN_OPTIONS.has(option));
  if (unknown === 'collation') {
    if (!isDocument(spec.collation) || spec.collation.locale !== 'simple') {
      throw new CommandError(115, 'indexes with a collation are not supported here');
    }
  } else if (unknown !== undefined) {
    throw new CommandError(
      197,
      `The field '${unknown}' is not valid for an index specification. Specification: ${name}`,
    );
  }
  const parts = keyPartsOf(key);
  const { partialFilterExpression: partialFilter, expireAfterSeconds } = spec;
  if (partialFilter !== undefined && !isDocument(partialFilter)) {
    throw typeMismatch("The field 'partialFilterExpression' must be an object");
  }
  if (partialFilter) requirePartialFilter(partialFilter);
  if (expireAfterSeconds !== undefined) {
    const seconds = isNumeric(expireAfterSeconds) ? toNumber(expireAfterSeconds) : NaN;
    if (!(seconds >= 0 && seconds <= MAX_EXPIRE_AFTER_SECONDS)) {
      throw new CommandError(
        67,
        "TTL index 'expireAfterSeconds' option must be a number within an acceptable range",
      );
    }
    if (parts.length === 1 && parts[0]?.path === '_id') {
      throw new CommandError(
        197,
        "The field 'expireAfterSeconds' is not valid for an _id index specification.",
      );
    }
    if (parts.length > 1)
      throw new CommandError(67, 'TTL indexes are single-field indexes, compound indexes do not support TTL');
  }
  if (isTrue(spec.sparse) && partialFilter) {
    throw new CommandError(67, 'cannot mix "partialFilterExpression" and "sparse" options');
  }
  const options: Document = {};
  for (const option of ['unique', 'sparse', 'hidden'] as const) {
    if (isTrue(spec[option])) options[option] = true;
  }
  if (partialFilter) options.partialFilterExpression = partialFilter;
  if (expireAfterSeconds !== undefined) options.expireAfterSeconds = expireAfterSeconds;
  return {
    name,
    key,
    parts,
    unique: options.unique === true || name === '_id_',
    sparse: options.sparse === true,
    hidden: options.hidden === true,
    partialFilter,
    expireAfterSeconds: isNumeric(expireAfterSeconds) ? toNumber(expireAfterSeconds) : undefined,
    spec: { v: 2, key, name, ...options },
  };
}

export const ID_INDEX: IndexDefinition = parseIndexDefinition({ key: { _id: 1 }, name: '_id_' });

/** Indexes of one key that differ in these may stand beside each other, and are told apart by name. */
const isSameSignature = (a: IndexDefinition, b: IndexDefinition): boolean =>
  keyOf(a.key) === keyOf(b.key) &&
  keyOf(a.partialFilter ?? null) === keyOf(b.partialFilter ?? null) &&
  a.sparse === b.sparse &&
  a.unique === b.unique;

/**
 * Whether an index that is asked for exists already.
 * @throws CommandError when the name or the key is taken by a different one
 */
export function isSameIndex(existing: IndexDefinition, wanted: IndexDefinition): boolean {
  const isIdIndex = keyOf(existing.key) === keyOf(ID_INDEX.key) && keyOf(wanted.key) === keyOf(existing.key);
  if (isIdIndex) return true;
  const sameSignature = isSameSignature(existing, wanted);
  const sameOptions = sameSignature && existing.expireAfterSeconds === wanted.expireAfterSeconds;
  if (existing.name === wanted.name) {
    if (!sameSignature) {
      throw new CommandError(
        86,
        `An existing index has the same name as the requested index. When index names are not specified, they are auto generated and can cause conflicts. Please refer to our documentation. Requested index: ${formatValue(wanted.spec)}, existing index: ${formatValue(existing.spec)}`,
      );
    }
    if (!sameOptions) {
      throw new CommandError(
        85,
        `An equivalent index already exists with the same name but different options. Requested index: ${formatValue(wanted.spec)}, existing index: ${formatValue(existing.spec)}`,
      );
    }
    return true;
  }
  if (!sameSignature) return false;
  throw new CommandError(
    85,
    sameOptions
      ? `Index already exists with a different name: ${existing.name}`
      : `An equivalent index already exists with a different name and options. Requested index: ${formatValue(wanted.spec)}, existing index: ${formatValue(existing.spec)}`,
  );
}

/** The names of the top-level fields that decide what an index holds of a document. */
export function fieldsOf(definition: IndexDefinition, filterFields: readonly string[]): string[] {
  const names = [...definition.parts.map(({ path }) => path), ...filterFields].map(
    (path) => path.split('.')[0] ?? '',
  );
  return [...new Set(names)];
}
