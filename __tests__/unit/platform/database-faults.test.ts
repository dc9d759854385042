import { mongo } from 'mongoose';
import { isDatabaseUnreachable } from '../../../src/platform/database/faults';

describe('a database that can not be reached', () => {
  test.each([
    ['shutting down', new mongo.MongoServerError({ message: 'bye', code: 11_600 })],
    ['no longer primary', new mongo.MongoServerError({ message: 'not primary', code: 10_107 })],
    ['gone', new mongo.MongoNetworkError('reset')],
    [
      'gone in the middle of many writes',
      new mongo.MongoBulkWriteError(new mongo.MongoNetworkError('reset') as never, {} as never),
    ],
    ['one whose pool was cleared', new mongo.MongoNetworkTimeoutError('late')],
  ])('is one that is %s', (_, error) => {
    expect(isDatabaseUnreachable(error)).toBe(true);
  });

  test.each([
    ['refuses a duplicate', new mongo.MongoServerError({ message: 'dup', code: 11_000 })],
    ['refuses a document', new mongo.MongoServerError({ message: 'invalid', code: 121 })],
    ['was never asked', new TypeError('no such method')],
  ])('is not one that %s', (_, error) => {
    expect(isDatabaseUnreachable(error)).toBe(false);
  });
});
