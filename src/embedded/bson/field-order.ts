import type { Document, Value } from './values';
import { FIELD_ORDER, setField } from './values';

/** Names that an object lists before its others and by size, whatever order they were set in. */
function isArrayIndex(name: string): boolean {
  const first = name.charCodeAt(0);
  return first >= 48 && first <= 57 && /^(0|[1-9]\d{0,9})$/.test(name);
}

/** The names of a document's fields in the order they were sent or set in. */
export function namesOf(document: Document): string[] {
  const order = document[FIELD_ORDER];
  const names = Object.keys(document);
  if (!order) return names;
  const kept = order.filter((name) => Object.hasOwn(document, name));
  if (kept.length === names.length) return kept;
  const known = new Set(kept);
  return [...kept, ...names.filter((name) => !known.has(name))];
}

export function entriesOf(document: Document): [string, Value][] {
  return namesOf(document).map((name) => [name, document[name]]);
}

/** Notes the names in the order they came as a document is made. */
export class FieldOrder {
  #names: string[] | undefined;

  /** To be called with each name before its field is set. */
  note(name: string, document: Document): void {
    if (this.#names) this.#names.push(name);
    else if (isArrayIndex(name)) this.#names = [...Object.keys(document), name];
  }

  /** Keeps the order with the finished document where the document's own would be another. */
  keep(document: Document): void {
    if (!this.#names) return;
    const order = [...new Set(this.#names)];
    const names = Object.keys(document);
    if (order.some((name, i) => name !== names[i])) document[FIELD_ORDER] = order;
  }
}

/** Sets a field; one that the document hasn't had comes last. */
export function putField(document: Document, name: string, value: Value): void {
  if (!Object.hasOwn(document, name) && (document[FIELD_ORDER] !== undefined || isArrayIndex(name))) {
    document[FIELD_ORDER] = [...namesOf(document), name];
  }
  setField(document, name, value);
}

/** The same fields with `_id` before them. */
export function withIdFirst(document: Document, id: Value): Document {
  const names = namesOf(document);
  if (names[0] === '_id' && document._id === id) return document;
  const made: Document = { ...document };
  Reflect.deleteProperty(made, '_id');
  const result: Document = { _id: id, ...made };
  if (document[FIELD_ORDER] !== undefined || Object.keys(result)[0] !== '_id') {
    result[FIELD_ORDER] = ['_id', ...names.filter((name) => name !== '_id')];
  }
  return result;
}
