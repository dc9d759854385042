import {
  collMod,
  create,
  drop,
  dropDatabase,
  listCollections,
  listDatabases,
  renameCollection,
} from './catalog';
import { count, distinct } from './count';
import { getMore, killCursors } from './cursors';
import { remove } from './delete';
import { aggregateOrExplain, explain } from './explain';
import { find } from './find';
import { findAndModify } from './find-and-modify';
import {
  acknowledge,
  buildInfo,
  configureFailPoint,
  connectionStatus,
  getCmdLineOpts,
  getLog,
  getParameter,
  hello,
  hostInfo,
  whatsMyUri,
} from './handshake';
import { createIndexes, dropIndexes, listIndexes } from './indexes';
import { insert } from './insert';
import type { Command } from './request';
import { collStats, dbStats, serverStatus, validate } from './statistics';
import { update } from './update';

/** Every command that there is, by its name; the last few under a second one that old clients use. */
export const COMMANDS: ReadonlyMap<string, Command> = new Map<string, Command>([
  ['hello', hello],
  ['ping', acknowledge],
  ['buildInfo', buildInfo],
  ['hostInfo', hostInfo],
  ['connectionStatus', connectionStatus],
  ['whatsmyuri', whatsMyUri],
  ['getParameter', getParameter],
  ['getLog', getLog],
  ['getCmdLineOpts', getCmdLineOpts],
  ['endSessions', acknowledge],
  ['refreshSessions', acknowledge],
  ['killSessions', acknowledge],
  ['killAllSessions', acknowledge],
  ['configureFailPoint', configureFailPoint],
  ['insert', insert],
  ['find', find],
  ['getMore', getMore],
  ['killCursors', killCursors],
  ['update', update],
  ['delete', remove],
  ['findAndModify', findAndModify],
  ['aggregate', aggregateOrExplain],
  ['count', count],
  ['distinct', distinct],
  ['explain', explain],
  ['createIndexes', createIndexes],
  ['dropIndexes', dropIndexes],
  ['listIndexes', listIndexes],
  ['create', create],
  ['collMod', collMod],
  ['drop', drop],
  ['dropDatabase', dropDatabase],
  ['listCollections', listCollections],
  ['listDatabases', listDatabases],
  ['renameCollection', renameCollection],
  ['collStats', collStats],
  ['dbStats', dbStats],
  ['serverStatus', serverStatus],
  ['validate', validate],
  ['isMaster', hello],
  ['ismaster', hello],
  ['buildinfo', buildInfo],
  ['findandmodify', findAndModify],
]);
