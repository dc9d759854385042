import { Long } from 'mongodb';
import { useEmbedded } from '../../support/embedded-fixture';

const embedded = useEmbedded();

const DOCUMENT = {
  _id: 1,
  a: 5,
  long: Long.fromNumber(7),
  list: [1, 2, 3, 4],
  date: new Date(1000),
  text: 'h\u00e9llo',
  nothing: null,
  inner: { p: 1, q: 'z' },
  nested: [{ v: 1 }, { v: 2 }],
};

describe('expressions', () => {
  it.each<[expression: unknown, value: unknown]>([
    [{ $slice: [{ $concatArrays: ['$list', [9]] }, -2] }, [4, 9]],
    [{ $concatArrays: [{ $ifNull: ['$missing', []] }, [{ n: '$a' }]] }, [{ n: 5 }]],
    [{ $filter: { input: '$nested', as: 'x', cond: { $gte: ['$$x.v', 2] } } }, [{ v: 2 }]],
    [{ $map: { input: '$nested', as: 'x', in: { $add: ['$$x.v', '$long'] } } }, [8, 9]],
    [{ $reduce: { input: '$list', initialValue: 0, in: { $add: ['$$value', '$$this'] } } }, 10],
    [{ $min: [10, { $multiply: [2, { $pow: [2, '$a'] }] }] }, 10],
    [{ $dateAdd: { startDate: '$date', unit: 'millisecond', amount: '$long' } }, new Date(1007)],
    [{ $dateFromParts: { year: 2020, month: 2 } }, new Date(Date.UTC(2020, 1, 1))],
    [{ $subtract: ['$date', new Date(0)] }, 1000],
    [{ $subtract: ['$date', 1000] }, new Date(0)],
    [{ $add: ['$date', '$long'] }, new Date(1007)],
    [{ $toDate: { $add: [{ $toLong: '$date' }, 5] } }, new Date(1005)],
    [{ $cond: [{ $and: [{ $eq: ['$nothing', null] }, { $not: ['$missing'] }] }, 'y', 'n'] }, 'y'],
    [{ $eq: ['$missing', null] }, false],
    [{ $lt: ['$missing', 5] }, true],
    [{ $in: ['$a', [Long.fromNumber(5)]] }, true],
    [{ $switch: { branches: [{ case: { $gt: ['$a', 3] }, then: 'big' }], default: 'small' } }, 'big'],
    [{ $convert: { input: 'zz', to: 'int', onError: -1 } }, -1],
    [{ $indexOfCP: ['$text', 'l'] }, 2],
    [{ $strLenBytes: '$text' }, 6],
    [{ $regexMatch: { input: '$text', regex: '^h' } }, true],
    [{ $isArray: [['a']] }, true],
    [{ $size: [['a', 'b']] }, 2],
    [{ $round: [2.5] }, 2],
    [{ $type: '$long' }, 'long'],
    [{ $type: '$missing' }, 'missing'],
    [{ $literal: '$a' }, '$a'],
    [{ $let: { vars: { x: { $add: ['$a', 1] } }, in: { $multiply: ['$$x', 2] } } }, 12],
    [{ $mergeObjects: ['$inner', { p: 2 }] }, { p: 2, q: 'z' }],
    [{ $sortArray: { input: '$list', sortBy: -1 } }, [4, 3, 2, 1]],
    ['$nested.v', [1, 2]],
    ['$$ROOT.inner.p', 1],
    [
      { x: '$a', y: ['$long', 1] },
      { x: 5, y: [7, 1] },
    ],
  ])('%j is %j in a projection, in an update and in a filter', async (expression, value) => {
    await embedded.things.insertOne({ ...DOCUMENT });
    const [projected] = await embedded.things
      .aggregate([{ $project: { _id: 0, value: expression } }])
      .toArray();
    expect(projected).toEqual({ value });
    const updated = await embedded.things.findOneAndUpdate({ _id: 1 }, [{ $set: { value: expression } }], {
      returnDocument: 'after',
    });
    expect(updated).toEqual({ ...DOCUMENT, long: 7, value });
    expect(await embedded.things.countDocuments({ $expr: { $eq: [expression, { $literal: value }] } })).toBe(
      1,
    );
  });
});
