import { randomUUID } from 'node:crypto';
import type { Document, Value } from '../bson/values';
import { field } from '../bson/values';
import { CommandError } from '../errors';
import type { DocumentTest } from '../query/filter';
import type { StoredRecord } from './collection-index';
import { CollectionIndex } from './collection-index';
import type { IndexDefinition } from './index-definition';
import { ID_INDEX, isSameIndex } from './index-definition';

const MAX_INDEXES = 64;

export interface Validation {
  readonly test: DocumentTest;
  readonly warnOnly: boolean;
}

/** The documents of one collection with their indexes, which every change keeps in step or doesn't happen at all. */
export class Collection {
  readonly kind = 'collection';
  readonly uuid = randomUUID();
  validation: Validation | undefined;
  readonly #records = new Set<StoredRecord>();
  #indexes: CollectionIndex[] = [new CollectionIndex(ID_INDEX)];
  #lastRid = 0;

  constructor(
    public namespace: string,
    public options: Document,
  ) {}

  get count(): number {
    return this.#records.size;
  }

  get indexes(): readonly CollectionIndex[] {
    return this.#indexes;
  }

  /** In the order of insertion; it may be walked while documents are added and removed. */
  records(): IterableIterator<StoredRecord> {
    return this.#records.values();
  }

  has(record: StoredRecord): boolean {
    return this.#records.has(record);
  }

  /** @throws CommandError when an index refuses it */
  insert(document: Document): StoredRecord {
    const keys = this.#indexes.map((index) => index.keysOf(document));
    this.#indexes.forEach((index, i) => index.assertFree(keys[i] ?? [], undefined, this.namespace));
    const record: StoredRecord = { rid: ++this.#lastRid, document };
    this.#records.add(record);
    this.#indexes.forEach((index, i) => index.add(keys[i] ?? [], record));
    return record;
  }

  /** @throws CommandError when an index refuses it; nothing has changed then */
  replace(record: StoredRecord, document: Document): void {
    const changes = [];
    for (const index of this.#indexes) {
      if (!index.isTouchedBy(record.document, document)) continue;
      const before = index.keysOf(record.document);
      const after = index.keysOf(document);
      const added = CollectionIndex.without(after, before);
      index.assertFree(added, record.rid, this.namespace);
      changes.push({ index, added, removed: CollectionIndex.without(before, after) });
    }
    for (const { index, added, removed } of changes) {
      index.remove(removed, record.rid);
      index.add(added, record);
    }
    record.document = document;
  }

  remove(record: StoredRecord): void {
    if (!this.#records.delete(record)) return;
    for (const index of this.#indexes) index.remove(index.keysOf(record.document), record.rid);
  }

  clear(): void {
    this.#records.clear();
    this.#indexes = this.#indexes.map(({ definition }) => new CollectionIndex(definition));
  }

  findIndex(hint: string | Document): CollectionIndex | undefined {
    return typeof hint === 'string'
      ? this.#indexes.find(({ definition }) => definition.name === hint)
      : this.#indexes.find(({ definition }) => isSameKey(definition.key, hint));
  }

  /** @returns false when it was there already; @throws CommandError when documents or another index stand against it */
  createIndex(definition: IndexDefinition): boolean {
    if (this.#indexes.some((existing) => isSameIndex(existing.definition, definition))) return false;
    if (this.#indexes.length >= MAX_INDEXES) throw new CommandError(67, 'add index fails, too many indexes');
    const index = new CollectionIndex(definition);
    for (const record of this.#records) {
      const keys = index.keysOf(record.document);
      index.assertFree(keys, undefined, this.namespace);
      index.add(keys, record);
    }
    this.#indexes.push(index);
    return true;
  }

  dropIndex(index: CollectionIndex): void {
    this.#indexes = this.#indexes.filter((each) => each !== index);
  }

  /** Changes an option of an index without building it anew. */
  redefineIndex(index: CollectionIndex, definition: IndexDefinition): void {
    const replacement = new CollectionIndex(definition);
    for (const record of this.#records) replacement.add(replacement.keysOf(record.document), record);
    this.#indexes = this.#indexes.map((each) => (each === index ? replacement : each));
  }

  /** @throws CommandError 121 */
  validate(document: Document): void {
    if (!this.validation || this.validation.warnOnly || this.validation.test(document)) return;
    throw new CommandError(121, 'Document failed validation', {
      errInfo: { failingDocumentId: field(document, '_id') },
    });
  }
}

/** A stored pipeline over another collection. */
export interface View {
  readonly kind: 'view';
  readonly namespace: string;
  readonly viewOn: string;
  readonly pipeline: Value[];
  readonly options: Document;
}

function isSameKey(a: Document, b: Document): boolean {
  const [x, y] = [Object.entries(a), Object.entries(b)];
  return (
    x.length === y.length &&
    x.every(([path, how], i) => {
      const other = y[i];
      return (
        other?.[0] === path && (typeof how === 'string' ? how === other[1] : Number(how) === Number(other[1]))
      );
    })
  );
}
