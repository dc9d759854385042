import type { Document, Value } from '../bson/values';
import { isDocument } from '../bson/values';
import { badValue, CommandError } from '../errors';
import type { CollectionIndex } from '../storage/collection-index';
import { parseIndexDefinition } from '../storage/index-definition';
import { formatValue } from '../storage/format-value';
import { namespaceOf } from '../storage/store';
import type { Command, Request } from './request';
import {
  cursorReply,
  DEFAULT_FIRST_BATCH,
  documentIn,
  documentsIn,
  namespaceIn,
  wholeNumberIn,
} from './request';

export const createIndexes: Command = (request) => {
  const { engine, body } = request;
  const namespace = namespaceIn(request);
  const definitions = documentsIn(body, 'indexes').map(parseIndexDefinition);
  if (definitions.length === 0) throw badValue('Must specify at least one index to create');
  const createdCollectionAutomatically = engine.store.existing(namespace) === undefined;
  const collection = engine.store.obtain(namespace);
  const numIndexesBefore = collection.indexes.length;
  const created: CollectionIndex[] = [];
  try {
    for (const definition of definitions) {
      const index = collection.createIndex(definition) ? collection.indexes.at(-1) : undefined;
      if (index) created.push(index);
    }
  } catch (error) {
    // All of them or none.
    for (const index of created) collection.dropIndex(index);
    throw error;
  }
  const numIndexesAfter = collection.indexes.length;
  return {
    numIndexesBefore,
    numIndexesAfter,
    createdCollectionAutomatically,
    ...(numIndexesAfter === numIndexesBefore ? { note: 'all indexes already exist' } : {}),
    ok: 1,
  };
};

export const listIndexes: Command = (request) => {
  const namespace = namespaceIn(request);
  const collection = request.engine.store.existing(namespace);
  if (!collection) throw new CommandError(26, `ns does not exist: ${namespaceOf(namespace)}`);
  const batchSize = wholeNumberIn(documentIn(request.body, 'cursor'), 'batchSize', DEFAULT_FIRST_BATCH);
  const specifications = collection.indexes.map(({ definition }) => definition.spec);
  return cursorReply(request, namespaceOf(namespace), specifications, { batchSize, singleBatch: false });
};

function indexesToDrop(
  request: Request,
  indexes: readonly CollectionIndex[],
  wanted: Value,
): CollectionIndex[] {
  if (wanted === '*') return indexes.filter(({ definition }) => definition.name !== '_id_');
  if (Array.isArray(wanted)) return wanted.flatMap((each) => indexesToDrop(request, indexes, each));
  const found =
    typeof wanted === 'string' || isDocument(wanted)
      ? request.engine.store.existing(namespaceIn(request))?.findIndex(wanted)
      : undefined;
  if (!found)
    throw new CommandError(
      27,
      typeof wanted === 'string'
        ? `index not found with name [${wanted}]`
        : `can't find index with key: ${formatValue(wanted)}`,
    );
  if (found.definition.name === '_id_') throw new CommandError(72, 'cannot drop _id index');
  return [found];
}

export const dropIndexes: Command = (request) => {
  const namespace = namespaceIn(request);
  const collection = request.engine.store.existing(namespace);
  if (!collection) throw new CommandError(26, `ns not found ${namespaceOf(namespace)}`);
  const nIndexesWas = collection.indexes.length;
  for (const index of indexesToDrop(request, collection.indexes, request.body.index))
    collection.dropIndex(index);
  return { nIndexesWas, ok: 1 };
};

function indexOptionsIn(body: Document): Document | undefined {
  return isDocument(body.index) ? body.index : undefined;
}

/** The part of `collMod` that changes an index. */
export function changeIndex(request: Request): Document {
  const options = indexOptionsIn(request.body);
  const collection = request.engine.store.existing(namespaceIn(request));
  if (!options || !collection) return {};
  const wanted = options.name ?? options.keyPattern;
  const index = typeof wanted === 'string' || isDocument(wanted) ? collection.findIndex(wanted) : undefined;
  if (!index)
    throw new CommandError(27, `cannot find index ${formatValue(wanted)} for ns ${collection.namespace}`);
  const changes: Document = {};
  for (const name of ['expireAfterSeconds', 'hidden'] as const) {
    if (options[name] !== undefined) changes[name] = options[name];
  }
  const { spec } = index.definition;
  const reply: Document = {};
  for (const [name, value] of Object.entries(changes)) {
    reply[`${name}_old`] = spec[name] ?? false;
    reply[`${name}_new`] = value;
  }
  collection.redefineIndex(index, parseIndexDefinition({ ...spec, ...changes }));
  return reply;
}
