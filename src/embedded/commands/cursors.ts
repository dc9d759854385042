import { CommandError } from '../errors';
import type { Command } from './request';
import { valuesIn, wholeNumberIn } from './request';

export const getMore: Command = ({ engine, db, body }) => {
  const { getMore: id, collection } = body;
  if (typeof id !== 'bigint')
    throw new CommandError(14, "BSON field 'getMore.getMore' is the wrong type, expected type 'long'");
  if (typeof collection !== 'string') {
    throw new CommandError(14, "BSON field 'getMore.collection' is the wrong type, expected type 'string'");
  }
  const namespace = `${db}.${collection}`;
  const cursor = engine.cursors.get(id, namespace);
  const nextBatch = cursor.nextBatch(wholeNumberIn(body, 'batchSize', 0) || Infinity);
  const exhausted = cursor.isExhausted;
  if (exhausted) engine.cursors.close(id);
  return { cursor: { nextBatch, id: exhausted ? 0n : id, ns: namespace }, ok: 1 };
};

export const killCursors: Command = ({ engine, body }) => {
  const ids = valuesIn(body, 'cursors');
  const isOpen = (id: unknown): boolean => typeof id === 'bigint' && engine.cursors.close(id);
  const cursorsKilled = ids.filter(isOpen);
  return {
    cursorsKilled,
    cursorsNotFound: ids.filter((id) => !cursorsKilled.includes(id)),
    cursorsAlive: [],
    cursorsUnknown: [],
    ok: 1,
  };
};
