import type { Connection, mongo } from 'mongoose';

/** What is needed of a mongoose model to reach its collection. */
export interface BoundModel {
  readonly modelName: string;
  readonly db: Connection;
  readonly collection: { readonly collectionName: string };
}

/**
 * The driver's own collection behind a model: no hydration, no casting, and no queueing of commands by mongoose while the
 * connection is down. `undefined` values are left out instead of being stored as null.
 */
export function nativeCollection<Stored extends mongo.Document>({
  db,
  collection,
}: BoundModel): mongo.Collection<Stored> {
  return db.getClient().db(db.name).collection<Stored>(collection.collectionName, { ignoreUndefined: true });
}
