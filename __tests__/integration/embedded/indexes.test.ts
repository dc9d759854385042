import type { Filter, UpdateResult } from 'mongodb';
import type { Thing } from '../../support/embedded-fixture';
import { range, refusal, useEmbedded } from '../../support/embedded-fixture';

const embedded = useEmbedded();

interface PlanStage {
  stage: string;
  indexName?: string;
  inputStage?: PlanStage;
}

interface Explained {
  queryPlanner: { winningPlan: PlanStage };
  executionStats: { totalKeysExamined: number; totalDocsExamined: number };
}

/** For updates of arrays, whose types the driver would have to know. */
const change = (filter: Filter<Thing>, update: object): Promise<UpdateResult<Thing>> =>
  embedded.things.updateOne(filter, update);

describe('indexes', () => {
  async function explain(
    command: object,
  ): Promise<{ stages: string[]; indexName: string | undefined; keys: number; documents: number }> {
    const { queryPlanner, executionStats } = (await embedded.db.command({
      explain: command,
      verbosity: 'executionStats',
    })) as Explained;
    const stages: string[] = [];
    let indexName: string | undefined;
    for (let stage: PlanStage | undefined = queryPlanner.winningPlan; stage; stage = stage.inputStage) {
      stages.push(stage.stage);
      indexName ??= stage.indexName;
    }
    return {
      stages,
      indexName,
      keys: executionStats.totalKeysExamined,
      documents: executionStats.totalDocsExamined,
    };
  }

  it('serve equality, range and order together, for every command that looks for documents', async () => {
    await embedded.things.createIndex({ status: 1, runAt: 1 });
    await embedded.things.createIndex({ other: 1 });
    await embedded.things.insertMany(
      range(1000, (i) => ({ _id: i, status: i % 10 ? 'done' : 'ready', runAt: new Date(i), other: i })),
    );
    const name = embedded.things.collectionName;
    const filter = { status: 'ready', runAt: { $lte: new Date(500) } };
    const found = await explain({ find: name, filter, sort: { runAt: -1 }, limit: 2 });
    expect(found).toEqual({
      stages: ['LIMIT', 'FETCH', 'IXSCAN'],
      indexName: 'status_1_runAt_1',
      keys: 2,
      documents: 2,
    });
    for (const command of [
      { count: name, query: filter },
      { distinct: name, key: 'other', query: filter },
      { delete: name, deletes: [{ q: filter, limit: 0 }] },
      { update: name, updates: [{ q: filter, u: { $set: { a: 1 } }, multi: true }] },
      {
        aggregate: name,
        pipeline: [{ $match: filter }, { $group: { _id: null, n: { $sum: 1 } } }],
        cursor: {},
      },
    ]) {
      await expect(explain(command)).resolves.toMatchObject({ indexName: 'status_1_runAt_1', documents: 51 });
    }
    const claim = {
      findAndModify: name,
      query: { status: 'ready' },
      sort: { runAt: 1 },
      update: { $set: { status: 'x' } },
    };
    await expect(explain(claim)).resolves.toMatchObject({ indexName: 'status_1_runAt_1', documents: 1 });
    expect((await explain({ find: name, filter: { nope: 1 } })).stages).toEqual(['COLLSCAN']);
    expect((await explain({ find: name, sort: { nope: 1 } })).stages).toEqual(['SORT', 'COLLSCAN']);
    expect(await embedded.things.countDocuments(filter)).toBe(51);
  });

  it('that are partial serve only what they hold', async () => {
    await embedded.things.createIndex(
      { order: 1, _id: 1 },
      { partialFilterExpression: { phase: 'ready' }, name: 'claim' },
      {},
    );
    await embedded.things.insertMany(
      range(200, (i) => ({ _id: i, phase: i % 2 ? 'ready' : 'done', order: -i })),
    );
    const name = embedded.things.collectionName;
    const ready = { find: name, filter: { phase: 'ready' }, sort: { order: 1, _id: 1 }, limit: 1 };
    await expect(explain(ready)).resolves.toMatchObject({ indexName: 'claim', keys: 1 });
    await expect(explain({ ...ready, filter: { phase: 'done' } })).resolves.toMatchObject({
      indexName: undefined,
    });
    await expect(explain({ ...ready, filter: {} })).resolves.toMatchObject({ indexName: undefined });
    await expect(refusal(embedded.things.find({}).hint('claim').toArray())).resolves.toMatchObject({
      code: 291,
    });
  });

  it('serve arrays by their elements, each document once', async () => {
    await embedded.things.createIndex({ tags: 1 });
    await embedded.things.insertMany([
      { _id: 1, tags: ['a', 'b', 'c'] },
      { _id: 2, tags: ['b'] },
      { _id: 3, tags: [] },
      { _id: 4 },
    ]);
    expect(
      (
        await embedded.things
          .find({ tags: { $gte: 'a' } })
          .hint('tags_1')
          .toArray()
      )
        .map(({ _id }) => _id)
        .sort(),
    ).toEqual([1, 2]);
    expect(await embedded.things.countDocuments({ tags: { $in: ['a', 'b'] } })).toBe(2);
    await change({ _id: 1 }, { $pull: { tags: 'b' } });
    expect(await embedded.things.distinct('tags')).toEqual(['a', 'b', 'c']);
    expect(await embedded.things.countDocuments({ tags: 'b' })).toBe(1);
  });

  it('remove what has expired', async () => {
    await embedded.things.createIndex({ expiresAt: 1 }, { expireAfterSeconds: 0 }, {});
    await embedded.things.insertMany([
      { _id: 1, expiresAt: new Date(Date.now() - 1) },
      { _id: 2, expiresAt: new Date(Date.now() + 60_000) },
      { _id: 3, expiresAt: 'never' },
    ]);
    while ((await embedded.things.countDocuments()) > 2);
    expect(await embedded.things.distinct('_id')).toEqual([2, 3]);
  });
});
