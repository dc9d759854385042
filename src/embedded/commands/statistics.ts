import { encodeDocument } from '../bson/encode';
import type { Document } from '../bson/values';
import { isNumeric, toNumber } from '../bson/values';
import type { Collection } from '../storage/collection';
import type { Namespace } from '../storage/store';
import { namespaceOf } from '../storage/store';
import type { Command, Engine } from './request';
import { namespaceIn } from './request';

/** So many documents are measured; the others are taken to be alike. */
const MEASURED_DOCUMENTS = 100;
/** What an entry of an index takes in memory, roughly. */
const INDEX_ENTRY_BYTES = 64;

interface Sizes {
  readonly count: number;
  readonly size: number;
  readonly indexSize: number;
  readonly indexes: number;
}

function sizesOf(collection: Collection | undefined): Sizes {
  if (!collection) return { count: 0, size: 0, indexSize: 0, indexes: 0 };
  let [measured, bytes] = [0, 0];
  for (const { document } of collection.records()) {
    bytes += encodeDocument(document).bytes.length;
    if (++measured >= MEASURED_DOCUMENTS) break;
  }
  return {
    count: collection.count,
    size: measured === 0 ? 0 : Math.round((bytes / measured) * collection.count),
    indexSize: collection.indexes.reduce((sum, { tree }) => sum + tree.size * INDEX_ENTRY_BYTES, 0),
    indexes: collection.indexes.length,
  };
}

function storageStatistics(collection: Collection | undefined, scale: number): Document {
  const { count, size, indexSize, indexes } = sizesOf(collection);
  return {
    size: Math.round(size / scale),
    count,
    avgObjSize: count === 0 ? 0 : Math.round(size / count),
    numOrphanDocs: 0,
    storageSize: Math.round(size / scale),
    freeStorageSize: 0,
    capped: false,
    nindexes: indexes,
    indexBuilds: [],
    totalIndexSize: Math.round(indexSize / scale),
    totalSize: Math.round((size + indexSize) / scale),
    indexSizes: Object.fromEntries(
      (collection?.indexes ?? []).map(({ definition, tree }) => [
        definition.name,
        tree.size * INDEX_ENTRY_BYTES,
      ]),
    ),
    scaleFactor: scale,
  };
}

const collectionAt = ({ store }: Engine, namespace: Namespace): Collection | undefined => {
  const found = store.find(namespace);
  return found?.kind === 'collection' ? found : undefined;
};

export function collectionStatistics(engine: Engine, namespace: Namespace, wanted: Document): Document {
  const collection = collectionAt(engine, namespace);
  const statistics: Document = { ns: namespaceOf(namespace), host: '127.0.0.1', localTime: new Date() };
  if (wanted.count !== undefined) statistics.count = collection?.count ?? 0;
  if (wanted.storageStats !== undefined) statistics.storageStats = storageStatistics(collection, 1);
  return statistics;
}

const scaleIn = ({ scale }: Document): number => (isNumeric(scale) ? Math.max(1, toNumber(scale)) : 1);

export const collStats: Command = (request) => {
  const namespace = namespaceIn(request);
  return {
    ns: namespaceOf(namespace),
    ...storageStatistics(collectionAt(request.engine, namespace), scaleIn(request.body)),
    ok: 1,
  };
};

export const dbStats: Command = ({ engine, db, body }) => {
  const scale = scaleIn(body);
  const found = [...engine.store.collectionsOf(db).values()];
  const sizes = found.flatMap((each) => (each.kind === 'collection' ? [sizesOf(each)] : []));
  const total = (of: (each: Sizes) => number): number => sizes.reduce((sum, each) => sum + of(each), 0);
  const [objects, size, indexSize] = [
    total((each) => each.count),
    total((each) => each.size),
    total((each) => each.indexSize),
  ];
  return {
    db,
    collections: sizes.length,
    views: found.length - sizes.length,
    objects,
    avgObjSize: objects === 0 ? 0 : size / objects,
    dataSize: size / scale,
    storageSize: size / scale,
    indexes: total((each) => each.indexes),
    indexSize: indexSize / scale,
    totalSize: (size + indexSize) / scale,
    scaleFactor: scale,
    ok: 1,
  };
};

export const serverStatus: Command = ({ engine, scope }) => {
  const upMs = scope.now.getTime() - engine.startedAtMs;
  const memory = process.memoryUsage();
  return {
    host: '127.0.0.1',
    version: '7.0.0',
    process: 'sorolane-embedded',
    pid: BigInt(process.pid),
    uptime: upMs / 1000,
    uptimeMillis: BigInt(upMs),
    localTime: scope.now,
    connections: {
      current: engine.openConnections(),
      available: 1000,
      totalCreated: engine.openConnections(),
    },
    opcounters: Object.fromEntries(
      ['insert', 'find', 'update', 'delete', 'getMore', 'aggregate', 'findAndModify'].map((name) => [
        name,
        BigInt(engine.commandCounts.get(name) ?? 0),
      ]),
    ),
    metrics: { cursor: { open: { total: BigInt(engine.cursors.size) } } },
    mem: {
      bits: 64,
      resident: Math.round(memory.rss / 1048576),
      virtual: Math.round(memory.rss / 1048576),
      supported: true,
    },
    storageEngine: { name: 'embedded', persistent: false, supportsCommittedReads: false },
    ok: 1,
  };
};

export const validate: Command = (request) => {
  const collection = collectionAt(request.engine, namespaceIn(request));
  const indexes = collection?.indexes ?? [];
  return {
    ns: namespaceOf(namespaceIn(request)),
    nrecords: collection?.count ?? 0,
    nIndexes: indexes.length,
    keysPerIndex: Object.fromEntries(indexes.map(({ definition, tree }) => [definition.name, tree.size])),
    valid: true,
    warnings: [],
    errors: [],
    ok: 1,
  };
};
