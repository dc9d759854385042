import { isDeepStrictEqual } from 'node:util';
import type { IndexDefinition, IndexOptions, mongo } from 'mongoose';
import { PermanentError } from '../errors';
import { nativeCollection, type BoundModel } from './native-collection';

type IndexKey = Record<string, unknown>;

export interface IndexedModel extends BoundModel {
  readonly schema: { indexes(): [IndexDefinition, IndexOptions][] };
}

/**
 * IndexOptionsConflict and IndexKeySpecsConflict: an index of that name with other options, such as a retention that was
 * changed in the settings. Which of the two it is differs between server versions.
 */
const INDEX_CONFLICTS: unknown[] = [85, 86];

/** Creates what the schema declares and is not there yet. Safe to run from any number of processes. */
export async function ensureIndexes(model: IndexedModel): Promise<void> {
  const collection = nativeCollection(model);
  for (const [key, options] of model.schema.indexes()) {
    try {
      await collection.createIndex(key as mongo.IndexSpecification, indexOptions(options), {});
    } catch (error) {
      const { name, expireAfterSeconds } = options;
      const changedRetention =
        INDEX_CONFLICTS.includes((error as mongo.MongoServerError).code) &&
        expireAfterSeconds !== undefined &&
        name;
      if (!changedRetention) throw error;
      await collection.dropIndex(name);
      await collection.createIndex(key as mongo.IndexSpecification, indexOptions(options), {});
    }
  }
}

/**
 * Every query of the hot path names its index, so a missing one is an outage and a differing one (not unique, not
 * partial) is a wrong answer. Better not to start.
 * @throws PermanentError INDEX_MISSING, with the names in the message.
 */
export async function verifyIndexes(model: IndexedModel): Promise<void> {
  const stored = await storedIndexes(nativeCollection(model));
  const missing = model.schema.indexes().filter(([key, options]) => {
    const found = stored.find((index) => index['name'] === options.name);
    return found === undefined || !sameIndex(found, key, options);
  });
  if (missing.length === 0) return;
  const names = missing.map(([key, { name }]) => name ?? JSON.stringify(key));
  throw new PermanentError(
    'INDEX_MISSING',
    `collection ${model.collection.collectionName} lacks ${names.join(', ')} (or has it in another form): create the indexes before starting`,
    { details: { collection: model.collection.collectionName, indexes: names } },
  );
}

/** What mongoose adds to the options on its own account is none of the server's business. */
function indexOptions({
  name,
  unique,
  partialFilterExpression,
  expireAfterSeconds,
}: IndexOptions): mongo.CreateIndexesOptions {
  return {
    ...(name === undefined ? {} : { name }),
    ...(unique === undefined ? {} : { unique: unique !== false }),
    ...(partialFilterExpression === undefined ? {} : { partialFilterExpression }),
    ...(expireAfterSeconds === undefined ? {} : { expireAfterSeconds }),
  };
}

async function storedIndexes(collection: mongo.Collection): Promise<mongo.IndexDescriptionInfo[]> {
  try {
    return await collection.indexes();
  } catch (error) {
    const NAMESPACE_NOT_FOUND = 26;
    if ((error as mongo.MongoServerError).code === NAMESPACE_NOT_FOUND) return [];
    throw error;
  }
}

function sameIndex(stored: mongo.IndexDescriptionInfo, key: IndexKey, options: IndexOptions): boolean {
  return (
    isDeepStrictEqual(Object.entries(stored.key), Object.entries(key)) &&
    (stored['unique'] === true) === (options.unique !== undefined && options.unique !== false) &&
    isDeepStrictEqual(stored['partialFilterExpression'], options.partialFilterExpression)
  );
}
