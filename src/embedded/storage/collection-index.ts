import { compareValues, keyOf } from '../bson/compare';
import type { Document, Value } from '../bson/values';
import { at } from '../bson/values';
import { badValue, CommandError } from '../errors';
import type { DocumentTest } from '../query/filter';
import { compileFilter } from '../query/filter';
import { formatValue } from './format-value';
import type { IndexDefinition, KeyPart } from './index-definition';
import { fieldsOf } from './index-definition';
import { KeyExtractor } from './index-keys';
import type { Entry, IndexKey, KeyOrder } from './ordered-index';
import { OrderedIndex } from './ordered-index';

/** A stored document. Documents are never changed in place: an update puts another one here. */
export interface StoredRecord extends Entry {
  document: Document;
}

function orderOf(parts: readonly KeyPart[]): KeyOrder {
  const [first] = parts;
  if (first && parts.length === 1) {
    const { direction } = first;
    return (a, b, length) => (length === 0 ? 0 : direction * compareValues(at(a, 0), at(b, 0)));
  }
  const directions = parts.map(({ direction }) => direction);
  return (a, b, length) => {
    for (let i = 0; i < length; i++) {
      const order = compareValues(a[i], b[i]);
      if (order !== 0) return order * at(directions, i);
    }
    return 0;
  };
}

function filterFieldsOf(filter: Document): string[] {
  return Object.entries(filter).flatMap(([name, value]) =>
    name.startsWith('$') && Array.isArray(value)
      ? value.flatMap((clause) => filterFieldsOf(clause as Document))
      : [name],
  );
}

/** One index of a collection: what it holds of which documents. */
export class CollectionIndex {
  readonly tree: OrderedIndex<StoredRecord>;
  /** Set once a document has stood under several keys, and never cleared: an entry may then stand for one of several values. */
  multikey = false;
  readonly #extractor: KeyExtractor;
  readonly #fields: readonly string[];
  readonly #holds: DocumentTest | undefined;

  constructor(readonly definition: IndexDefinition) {
    const { parts, partialFilter } = definition;
    this.tree = new OrderedIndex(orderOf(parts), parts.length);
    this.#extractor = new KeyExtractor(parts.map(({ path }) => path));
    this.#fields = fieldsOf(definition, partialFilter ? filterFieldsOf(partialFilter) : []);
    this.#holds =
      partialFilter &&
      compileFilter(partialFilter, {
        expression: () => {
          throw badValue('unsupported expression in partial index: $expr');
        },
      });
  }

  /** False when no field that this index looks at differs, so that an update leaves it alone. */
  isTouchedBy(before: Document, after: Document): boolean {
    return this.#fields.some((name) => before[name] !== after[name]);
  }

  keysOf(document: Document): readonly IndexKey[] {
    if (this.#holds && !this.#holds(document)) return [];
    if (this.definition.sparse && !this.#extractor.hasAnyField(document)) return [];
    const { keys, multikey } = this.#extractor.extract(document);
    if (multikey) this.multikey = true;
    return keys;
  }

  /** @throws CommandError 11000 when another document has one of the keys */
  assertFree(keys: readonly IndexKey[], rid: number | undefined, namespace: string): void {
    if (!this.definition.unique) return;
    for (const key of keys) {
      if (this.tree.findOther(key, rid)) throw this.#duplicate(key, namespace);
    }
  }

  add(keys: readonly IndexKey[], record: StoredRecord): void {
    for (const key of keys) this.tree.insert(key, record);
  }

  remove(keys: readonly IndexKey[], rid: number): void {
    for (const key of keys) this.tree.remove(key, rid);
  }

  /** The keys of `keys` that aren't among `others`. */
  static without(keys: readonly IndexKey[], others: readonly IndexKey[]): readonly IndexKey[] {
    if (keys.length === 0 || others.length === 0) return keys;
    const known = new Set(others.map((key) => keyOf(key as Value[])));
    return keys.filter((key) => !known.has(keyOf(key as Value[])));
  }

  #duplicate(key: IndexKey, namespace: string): CommandError {
    const { name, key: keyPattern, parts } = this.definition;
    const keyValue = Object.fromEntries(parts.map(({ path }, i) => [path, key[i] ?? null]));
    const shown = parts.map(({ path }, i) => `${path}: ${formatValue(key[i] ?? null)}`).join(', ');
    return new CommandError(
      11000,
      `E11000 duplicate key error collection: ${namespace} index: ${name} dup key: { ${shown} }`,
      { keyPattern, keyValue },
    );
  }
}
