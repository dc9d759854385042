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
const INDEX_NOT_FOUND = 27;
const COMMAND_NOT_FOUND = 59;
/** Others that start at the same time change the same index. */
const MAX_REBUILDS = 5;

const codeOf = (error: unknown): unknown => (error as mongo.MongoServerError).code;

/** Creates what the schema declares and is not there yet. Safe to run from any number of processes. */
export async function ensureIndexes(model: IndexedModel): Promise<void> {
  const collection = nativeCollection(model);
  for (const [key, options] of model.schema.indexes()) {
    try {
      await create(collection, key, options);
    } catch (error) {
      const isConflict = INDEX_CONFLICTS.includes(codeOf(error));
      if (!isConflict || options.expireAfterSeconds === undefined || options.name === undefined) throw error;
      await changeRetention(model, key, options);
    }
  }
}

const create = (collection: mongo.Collection, key: IndexDefinition, options: IndexOptions): Promise<string> =>
  collection.createIndex(key as mongo.IndexSpecification, indexOptions(options), {});

/** In place, so that there is no moment without the index for another process to stumble over. */
async function changeRetention(
  model: IndexedModel,
  key: IndexDefinition,
  options: IndexOptions,
): Promise<void> {
  const { db, collection } = model;
  const { name, expireAfterSeconds } = options;
  try {
    await db
      .getClient()
      .db(db.name)
      .command({ collMod: collection.collectionName, index: { name, expireAfterSeconds } });
  } catch (error) {
    if (codeOf(error) !== COMMAND_NOT_FOUND) throw error;
    await rebuild(nativeCollection(model), key, options);
  }
}

/** For an engine that can't change an index. */
async function rebuild(
  collection: mongo.Collection,
  key: IndexDefinition,
  options: IndexOptions,
): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      await collection.dropIndex(options.name as string);
    } catch (error) {
      if (codeOf(error) !== INDEX_NOT_FOUND) throw error;
    }
    try {
      await create(collection, key, options);
      return;
    } catch (error) {
      if (!INDEX_CONFLICTS.includes(codeOf(error)) || tries === MAX_REBUILDS) throw error;
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
