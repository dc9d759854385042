import type { Document } from '../bson/values';
import { CommandError } from '../errors';
import type { View } from './collection';
import { Collection } from './collection';

export interface Namespace {
  readonly db: string;
  readonly collection: string;
}

export const namespaceOf = ({ db, collection }: Namespace): string => `${db}.${collection}`;

/** All databases. A collection comes to be with its first document or index, as in mongod. */
export class Store {
  readonly #databases = new Map<string, Map<string, Collection | View>>();

  databaseNames(): string[] {
    return [...this.#databases.keys()].sort();
  }

  collectionsOf(db: string): ReadonlyMap<string, Collection | View> {
    return this.#databases.get(db) ?? new Map<string, Collection | View>();
  }

  find({ db, collection }: Namespace): Collection | View | undefined {
    return this.#databases.get(db)?.get(collection);
  }

  /** @throws CommandError for a view, which no command can write to */
  existing(namespace: Namespace): Collection | undefined {
    const found = this.find(namespace);
    if (found?.kind === 'view') {
      throw new CommandError(166, `Namespace ${namespaceOf(namespace)} is a view, not a collection`);
    }
    return found;
  }

  obtain(namespace: Namespace): Collection {
    return this.existing(namespace) ?? this.create(namespace, {});
  }

  create(namespace: Namespace, options: Document): Collection {
    const made = new Collection(namespaceOf(namespace), options);
    this.put(namespace, made);
    return made;
  }

  put({ db, collection }: Namespace, made: Collection | View): void {
    let collections = this.#databases.get(db);
    if (!collections) this.#databases.set(db, (collections = new Map<string, Collection | View>()));
    collections.set(collection, made);
  }

  drop({ db, collection }: Namespace): boolean {
    const collections = this.#databases.get(db);
    if (!collections?.delete(collection)) return false;
    if (collections.size === 0) this.#databases.delete(db);
    return true;
  }

  dropDatabase(db: string): boolean {
    return this.#databases.delete(db);
  }

  *allCollections(): Generator<Collection> {
    for (const collections of this.#databases.values()) {
      for (const each of collections.values()) if (each.kind === 'collection') yield each;
    }
  }
}
