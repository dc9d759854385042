import { Schema, Types } from 'mongoose';
import { defineLifecycle } from '../../../src/lifecycle/lifecycle';
import { LifecycleService, type LifecycleDocument } from '../../../src/lifecycle/lifecycle-service';
import { nativeCollection } from '../../../src/platform/database/native-collection';
import { silentLogger } from '../../../src/platform/logger';
import { openTestDatabase, type TestDatabase } from '../../support/database';

type State = 'draft' | 'review' | 'published' | 'withdrawn';

interface Article extends LifecycleDocument {
  _id: Types.ObjectId;
  status: State;
  url?: string;
  reason?: string;
}

const lifecycle = defineLifecycle<State>('article', {
  draft: { to: ['review', 'withdrawn'] },
  review: { to: ['draft', 'published', 'withdrawn'] },
  published: { to: [], requires: { fields: ['url'], code: 'MISSING_URL' } },
  withdrawn: { to: [] },
});

describe('the lifecycle service', () => {
  let database: TestDatabase;
  let service: LifecycleService<Article, State>;
  const stored = () => nativeCollection<Article>(database.connection.models['Article']!);
  const article = async (status: State = 'draft', fields: Partial<Article> = {}) => {
    const _id = new Types.ObjectId();
    await stored().insertOne({ _id, status, epoch: 0, timeline: [], updatedAt: new Date(0), ...fields });
    return _id;
  };

  beforeAll(async () => {
    database = await openTestDatabase();
    const model = database.connection.model('Article', new Schema({ status: String }));
    service = new LifecycleService({ lifecycle, model, logger: silentLogger(), timelineLimit: 5 });
  });
  afterAll(() => database.close());

  it.each(lifecycle.states.flatMap((from) => lifecycle.states.map((to) => [from, to] as const)))(
    'applies %s → %s exactly as the table allows',
    async (from, to) => {
      const id = await article(from);
      const result = await service.transition({
        id,
        from,
        to,
        epoch: 1,
        actor: 'worker',
        fields: { url: 'u' },
      });
      const allowed = lifecycle.check(from, to).kind;
      expect(result.kind).toBe(allowed === 'allowed' ? 'moved' : allowed);
      expect((await stored().findOne({ _id: id }))?.status).toBe(allowed === 'allowed' ? to : from);
    },
  );

  it('writes state, fields and timeline in one go, values taken literally', async () => {
    const id = await article();
    const result = await service.transition({
      id,
      from: 'draft',
      to: 'review',
      epoch: 3,
      actor: 'worker',
      reason: '$status',
      txHash: 'ab',
      fields: { url: '$$NOW' },
    });
    expect(result).toMatchObject({
      kind: 'moved',
      from: 'draft',
      document: { status: 'review', url: '$$NOW', epoch: 3 },
    });
    const { timeline, updatedAt } = (await stored().findOne({ _id: id }))!;
    expect(timeline).toMatchObject([
      { stage: 'review', from: 'draft', actor: 'worker', epoch: 3, reason: '$status', txHash: 'ab' },
    ]);
    expect(timeline[0]!.at).toEqual(updatedAt);
  });

  it('lets one of 10 writers win', async () => {
    const id = await article();
    const results = await Promise.all(
      Array.from({ length: 10 }, (_, i) =>
        service.transition({
          id,
          from: 'draft',
          to: i % 2 ? 'review' : 'withdrawn',
          epoch: 1,
          actor: `w${i}`,
        }),
      ),
    );
    const winners = results.filter(({ kind }) => kind === 'moved');
    expect(winners).toHaveLength(1);
    expect(results.every(({ kind }) => ['moved', 'already', 'conflict'].includes(kind))).toBe(true);
    expect((await stored().findOne({ _id: id }))?.timeline).toHaveLength(1);
  });

  it('refuses an older epoch, even for the state it is in', async () => {
    const id = await article();
    await service.transition({ id, from: 'draft', to: 'review', epoch: 5, actor: 'new' });
    expect(
      await service.transition({
        id,
        from: 'review',
        to: 'published',
        epoch: 4,
        actor: 'old',
        fields: { url: 'u' },
      }),
    ).toMatchObject({ kind: 'superseded' });
    expect(await service.transition({ id, to: 'review', epoch: 4, actor: 'old' })).toMatchObject({
      kind: 'superseded',
    });
    expect((await stored().findOne({ _id: id }))?.status).toBe('review');
  });

  it('fences by adoption before anything is moved', async () => {
    const id = await article('review');
    expect(await service.adopt(id, 7)).toMatchObject({
      kind: 'adopted',
      document: { epoch: 7, status: 'review' },
    });
    expect(await service.adopt(id, 7)).toMatchObject({ kind: 'adopted' });
    expect(await service.adopt(id, 6)).toEqual({ kind: 'superseded' });
    expect(
      await service.transition({ id, from: 'review', to: 'draft', epoch: 6, actor: 'old' }),
    ).toMatchObject({ kind: 'superseded' });
    expect(await service.adopt(new Types.ObjectId(), 1)).toEqual({ kind: 'not_found' });
  });

  it('wants the required fields, given now or stored before', async () => {
    const request = { from: 'review', to: 'published', epoch: 1, actor: 'worker' } as const;
    const id = await article('review');
    const missing = { kind: 'missing_fields', fields: ['url'], code: 'MISSING_URL' };
    expect(await service.transition({ ...request, id })).toEqual(missing);
    expect(await service.transition({ ...request, id, fields: { url: '' } })).toEqual(missing);
    expect(await service.transition({ ...request, id, fields: { url: 'u' } })).toMatchObject({
      kind: 'moved',
    });
    const withUrl = await article('review', { url: 'stored' });
    expect(await service.transition({ ...request, id: withUrl })).toMatchObject({
      kind: 'moved',
      document: { url: 'stored' },
    });
  });

  it('names the actual state when it is not the expected one', async () => {
    const id = await article('review');
    expect(
      await service.transition({ id, from: 'draft', to: 'withdrawn', epoch: 1, actor: 'w' }),
    ).toMatchObject({
      kind: 'conflict',
      actual: 'review',
    });
    const gone = { id: new Types.ObjectId(), from: 'draft', to: 'review', epoch: 1, actor: 'w' } as const;
    expect(await service.transition(gone)).toEqual({ kind: 'not_found' });
    expect(await service.transition({ ...gone, from: undefined })).toEqual({ kind: 'not_found' });
  });

  it('moves from wherever the document is when no state is named', async () => {
    const id = await article('review');
    expect(await service.transition({ id, to: 'withdrawn', epoch: 1, actor: 'w' })).toMatchObject({
      kind: 'moved',
      from: 'review',
    });
    expect(await service.transition({ id, to: 'withdrawn', epoch: 1, actor: 'w' })).toMatchObject({
      kind: 'already',
    });
    expect(await service.transition({ id, to: 'draft', epoch: 1, actor: 'w' })).toEqual({
      kind: 'illegal',
      from: 'withdrawn',
      to: 'draft',
    });
  });

  it('keeps the newest of a long history', async () => {
    const id = await article();
    for (let i = 0; i < 4; i++) {
      await service.transition({ id, from: 'draft', to: 'review', epoch: 1, actor: `r${i}` });
      await service.transition({ id, from: 'review', to: 'draft', epoch: 1, actor: `d${i}` });
    }
    const { timeline } = (await stored().findOne({ _id: id }))!;
    expect(timeline.map(({ actor }) => actor)).toEqual(['d1', 'r2', 'd2', 'r3', 'd3']);
  });
});
