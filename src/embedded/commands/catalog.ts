import { Binary } from 'mongodb';
import type { Document } from '../bson/values';
import { isDocument } from '../bson/values';
import { CommandError } from '../errors';
import { compileFilter } from '../query/filter';
import type { Scope } from '../scope';
import type { Collection, View } from '../storage/collection';
import { ID_INDEX } from '../storage/index-definition';
import { namespaceOf } from '../storage/store';
import { changeIndex } from './indexes';
import type { Command } from './request';
import {
  cursorReply,
  documentIn,
  flagIn,
  namespaceIn,
  parseNamespace,
  valuesIn,
  wholeNumberIn,
} from './request';

const UNSUPPORTED_OPTIONS = ['capped', 'timeseries', 'clusteredIndex', 'changeStreamPreAndPostImages'];

function setValidator(collection: Collection, options: Document, scope: Scope): void {
  const { validator, validationAction } = options;
  if (validator === undefined) return;
  if (!isDocument(validator)) throw new CommandError(14, "BSON field 'validator' must be an object");
  collection.validation =
    Object.keys(validator).length === 0
      ? undefined
      : { test: compileFilter(validator, scope), warnOnly: validationAction === 'warn' };
}

export const create: Command = (request) => {
  const { engine, body, scope } = request;
  const namespace = namespaceIn(request);
  const unsupported = UNSUPPORTED_OPTIONS.find((name) => isDocument(body[name]) || body[name] === true);
  if (unsupported !== undefined)
    throw new CommandError(115, `create with '${unsupported}' is not supported here`);
  if (isDocument(body.collation) && body.collation.locale !== 'simple') {
    throw new CommandError(115, 'collections with a collation are not supported here');
  }
  if (engine.store.find(namespace)) {
    throw new CommandError(48, `Collection ${namespaceOf(namespace)} already exists.`);
  }
  const options: Document = {};
  for (const name of ['viewOn', 'pipeline', 'validator', 'validationLevel', 'validationAction'] as const) {
    if (body[name] !== undefined) options[name] = body[name];
  }
  if (typeof body.viewOn === 'string') {
    engine.store.put(namespace, {
      kind: 'view',
      namespace: namespaceOf(namespace),
      viewOn: body.viewOn,
      pipeline: valuesIn(body, 'pipeline'),
      options,
    });
  } else {
    setValidator(engine.store.create(namespace, options), options, scope);
  }
  return { ok: 1 };
};

export const collMod: Command = (request) => {
  const { engine, body, scope } = request;
  const namespace = namespaceIn(request);
  const collection = engine.store.existing(namespace);
  if (!collection) throw new CommandError(26, `ns does not exist: ${namespaceOf(namespace)}`);
  const changed = changeIndex(request);
  const options: Document = {};
  for (const name of ['validator', 'validationLevel', 'validationAction'] as const) {
    if (body[name] !== undefined) options[name] = body[name];
  }
  collection.options = { ...collection.options, ...options };
  setValidator(collection, collection.options, scope);
  return { ...changed, ok: 1 };
};

export const drop: Command = (request) => {
  const namespace = namespaceIn(request);
  const found = request.engine.store.find(namespace);
  const nIndexesWas = found?.kind === 'collection' ? found.indexes.length : 0;
  // Since 7.0 dropping what isn't there is no error.
  request.engine.store.drop(namespace);
  request.engine.cursors.kill((each) => each === namespaceOf(namespace));
  return found ? { nIndexesWas, ns: namespaceOf(namespace), ok: 1 } : { ok: 1 };
};

export const dropDatabase: Command = ({ engine, db }) => {
  engine.cursors.kill((each) => each.startsWith(`${db}.`));
  return engine.store.dropDatabase(db) ? { dropped: db, ok: 1 } : { ok: 1 };
};

function describe(name: string, found: Collection | View): Document {
  if (found.kind === 'view') {
    return { name, type: 'view', options: found.options, info: { readOnly: true } };
  }
  const uuid = new Binary(Buffer.from(found.uuid.replaceAll('-', ''), 'hex'), Binary.SUBTYPE_UUID);
  return {
    name,
    type: 'collection',
    options: found.options,
    info: { readOnly: false, uuid },
    idIndex: ID_INDEX.spec,
  };
}

export const listCollections: Command = (request) => {
  const { engine, db, body, scope } = request;
  const test = scope.test(documentIn(body, 'filter'));
  const nameOnly = flagIn(body, 'nameOnly');
  const found = [...engine.store.collectionsOf(db)]
    .map(([name, each]) => describe(name, each))
    .filter(test)
    .map((each): Document => (nameOnly ? { name: each.name, type: each.type } : each));
  const batchSize = wholeNumberIn(documentIn(body, 'cursor'), 'batchSize', Infinity);
  return cursorReply(request, `${db}.$cmd.listCollections`, found, { batchSize, singleBatch: false });
};

export const listDatabases: Command = ({ engine, body, scope }) => {
  const test = scope.test(documentIn(body, 'filter'));
  const databases = engine.store
    .databaseNames()
    .map((name): Document => ({ name, sizeOnDisk: 0n, empty: engine.store.collectionsOf(name).size === 0 }))
    .filter(test);
  if (flagIn(body, 'nameOnly')) return { databases: databases.map(({ name }) => ({ name: name })), ok: 1 };
  return { databases, totalSize: 0n, totalSizeMb: 0n, ok: 1 };
};

export const renameCollection: Command = ({ engine, body }) => {
  const from = parseNamespace(body.renameCollection);
  const to = parseNamespace(body.to);
  const found = engine.store.existing(from);
  if (!found) throw new CommandError(26, `Source collection ${namespaceOf(from)} does not exist`);
  if (engine.store.find(to) && !flagIn(body, 'dropTarget'))
    throw new CommandError(48, 'target namespace exists');
  engine.store.drop(from);
  found.namespace = namespaceOf(to);
  engine.store.put(to, found);
  return { ok: 1 };
};
