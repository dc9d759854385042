import { silentLogger } from '../../../src/platform/logger';
import { DeadLetterProjector } from '../../../src/queue/dead-letter-projector';
import type { DeadLetterRepository } from '../../../src/queue/dead-letters';
import type { QueueEnvelope } from '../../../src/queue/envelope';
import type { MongoWorkerQueue } from '../../../src/queue/mongo-worker-queue';
import { openTestDatabase, type TestDatabase } from '../../support/database';
import {
  claimant,
  expireLease,
  mustClaim,
  parcelQueue,
  parcels,
  type Parcel,
} from '../../support/queue-fixture';
import { deadLetterRepository, parcelProjector } from '../../support/worker-fixture';

type Job = Parcel & QueueEnvelope;
const failure = { code: 'BAD_CID', message: 'never', kind: 'permanent', retryable: false } as const;

describe('dead letters', () => {
  let database: TestDatabase;
  let queue: MongoWorkerQueue<Parcel>;
  let records: DeadLetterRepository;
  let failedJobs: string[];

  const projector = (
    overrides: Partial<Pick<MongoWorkerQueue<Parcel>, 'markProjected'>> & {
      put?: () => never;
      findFinished?: () => Promise<Partial<Parcel> | null>;
    } = {},
  ) => {
    const crashing = <T extends object>(target: T, replaced: object): T =>
      new Proxy(target, {
        get: (real, name) => {
          if (Object.hasOwn(replaced, name)) return Reflect.get(replaced, name) as unknown;
          const member: unknown = Reflect.get(real, name);
          return typeof member === 'function' ? (member.bind(real) as unknown) : member;
        },
      });
    const { put, findFinished, ...queueOverrides } = overrides;
    return new DeadLetterProjector<Parcel>({
      pipeline: 'parcels',
      queue: crashing(queue, queueOverrides),
      records: crashing(records, put === undefined ? {} : { put }),
      describe: ({ label }) => ({ requester: label, mediaCid: `cid-${label}`, details: { $odd: label } }),
      onDead: (job) => {
        failedJobs.push(job.key);
        return Promise.resolve();
      },
      ...(findFinished === undefined ? {} : { findFinished }),
      logger: silentLogger(),
    });
  };

  const dead = async (key: string): Promise<Job> => {
    await queue.enqueue({ key, payload: { label: key } });
    const { lease } = await mustClaim(queue, claimant('w1'));
    await queue.deadLetter(lease, failure);
    return (await queue.find(lease.jobId))!;
  };

  const crash = (): never => {
    throw new Error('the process died here');
  };

  beforeAll(async () => {
    database = await openTestDatabase();
    queue = await parcelQueue(database.connection);
    records = await deadLetterRepository(database.connection);
  });
  beforeEach(() => {
    failedJobs = [];
  });
  afterEach(async () => {
    await parcels(database.connection).deleteMany({});
    await database.connection.collection('deadLetteredRequests').deleteMany({});
  });
  afterAll(() => database.close());

  it('hold what is specified, once, however often they are projected', async () => {
    const job = await dead('d');
    await Promise.all([projector().projectPending(), projector().projectPending(), projector().project(job)]);
    expect(await projector().projectPending()).toBe(0);
    expect(await records.countOpen()).toBe(1);
    expect(await records.find('parcels', 'd')).toMatchObject({
      jobId: job._id.toHexString(),
      requester: 'd',
      mediaCid: 'cid-d',
      details: { $odd: 'd' },
      attempts: 1,
      epoch: 1,
      reason: 'non_retryable',
      errorCode: 'BAD_CID',
      errorMessage: 'never',
      retryable: false,
      workerId: 'w1',
      deadLetteredAt: job.finishedAt,
      replayedAt: null,
    });
    expect(await queue.find(job._id.toHexString())).toMatchObject({
      phase: 'dead',
      deadLetterPending: false,
    });
  });

  it('are never written for a lease that was lost', async () => {
    await queue.enqueue({ key: 'k', payload: { label: 'k' } });
    const zombie = await mustClaim(queue, claimant('zombie'));
    await expireLease(database.connection, zombie.lease.jobId);
    await mustClaim(queue, claimant('owner'));
    expect(await queue.deadLetter(zombie.lease, failure)).toEqual({ kind: 'lease_lost' });
    expect(await projector().projectPending()).toBe(0);
    expect(await records.countOpen()).toBe(0);
  });

  it.each([
    ['before the record', { put: crash }, 0],
    ['before the flag falls', { markProjected: crash }, 1],
  ])('survive a crash %s', async (_, fault, writtenBefore) => {
    const job = await dead('d');
    await expect(projector(fault).project(job)).rejects.toThrow('died here');
    expect(await records.countOpen()).toBe(writtenBefore);
    expect(await projector().projectPending()).toBe(1);
    expect(await records.countOpen()).toBe(1);
    expect(failedJobs).toEqual(['d', 'd']);
  });

  it('of one failing job do not hold up those behind it', async () => {
    for (let i = 0; i < 60; i++) await dead(`d${i}`);
    const picky = new DeadLetterProjector<Parcel>({
      pipeline: 'parcels',
      queue,
      records,
      describe: () => ({}),
      onDead: ({ key }) => (Number(key.slice(1)) < 55 ? Promise.reject(new Error('no')) : Promise.resolve()),
      logger: silentLogger(),
    });
    expect(await picky.projectPending()).toBe(5);
    expect(await records.countOpen()).toBe(5);
  });

  it('name a worker that died as the reason', async () => {
    await queue.enqueue({ key: 'killer', payload: { label: 'killer' }, maxAttempts: 1 });
    const { lease } = await mustClaim(queue, claimant('victim'));
    await expireLease(database.connection, lease.jobId);
    await queue.tidy();
    await projector().projectPending();
    expect(await records.find('parcels', 'killer')).toMatchObject({
      reason: 'worker_died',
      errorCode: 'WORKER_DIED',
      workerId: 'victim',
      attempts: 1,
    });
  });

  it('are listed newest first, page by page', async () => {
    for (const key of ['a', 'b', 'c', 'd', 'e']) await dead(key);
    await projector().projectPending();
    const keys: string[] = [];
    let after: string | null | undefined;
    do {
      const page = await records.listOpen({ pipeline: 'parcels', limit: 2, ...(after ? { after } : {}) });
      keys.push(...page.records.map(({ requestId }) => requestId));
      after = page.next;
    } while (after !== null);
    expect(keys).toEqual(['e', 'd', 'c', 'b', 'a']);
    expect((await records.listOpen({ pipeline: 'others', limit: 2 })).records).toEqual([]);
    expect(await records.findById('nonsense')).toBeNull();
  });

  it('of an earlier death is closed when the work turns out to have been done', async () => {
    const first = await dead('d');
    await projector().projectPending();
    // Replayed by a process that died before it could close the record; then its worker died with the work done.
    await queue.replay(first._id.toHexString());
    const { lease } = await mustClaim(queue);
    await queue.deadLetter(lease, failure);
    await projector({ findFinished: () => Promise.resolve({ note: 'done after all' }) }).projectPending();
    expect(await queue.find(lease.jobId)).toMatchObject({ phase: 'done', note: 'done after all' });
    expect(await records.countOpen()).toBe(0);
  });

  it('is not left open by a pass that could not tell what another one found out', async () => {
    const job = await dead('d');
    let goOn = (): void => undefined;
    const slow = projector({
      findFinished: () => new Promise((resolve) => (goOn = () => resolve(null))),
    }).projectPending();
    await projector({ findFinished: () => Promise.resolve({ note: 'done' }) }).projectPending();
    goOn();
    await slow;
    expect(await queue.find(job._id.toHexString())).toMatchObject({ phase: 'done' });
    expect(await records.countOpen()).toBe(0);
  });

  it('of a key that comes again is a new one, where epochs are from the clock', async () => {
    const lasting = await parcelQueue(database.connection, 'Parcel', { isEpochFromClock: true });
    const killed = async (): Promise<Job> => {
      await lasting.enqueue({ key: 'again', payload: { label: 'again' } });
      const { lease } = await mustClaim(lasting);
      await lasting.deadLetter(lease, failure);
      await projector().projectPending();
      return (await lasting.find(lease.jobId))!;
    };
    const old = await killed();
    await records.markReplayed('parcels', 'again', old.epoch + 1);
    await parcels(database.connection).deleteOne({ key: 'again' });
    const young = await killed();
    expect(young.epoch).toBeGreaterThan(old.epoch + 1);
    expect(await records.find('parcels', 'again')).toMatchObject({ epoch: young.epoch, replayedAt: null });
  });

  describe('replay', () => {
    it('happens once when two ask at the same time, and the loser is told', async () => {
      const id = (await dead('d'))._id.toHexString();
      const results = await Promise.all([projector().replay(id), projector().replay(id)]);
      expect(results.map(({ kind }) => kind).sort()).toEqual(['not_dead', 'replayed']);
      expect(await projector().replay(id)).toMatchObject({ kind: 'not_dead', job: { phase: 'ready' } });
      expect(await projector().replay('0'.repeat(24))).toEqual({ kind: 'not_found' });
    });

    it('gives fresh attempts and a new epoch, clears what the patch says, and closes the record', async () => {
      const job = await dead('d');
      await projector().replay(job._id.toHexString(), { note: 'again' });
      expect(await queue.find(job._id.toHexString())).toMatchObject({
        phase: 'ready',
        attempts: 0,
        epoch: 2,
        replays: 1,
        note: 'again',
        finishedAt: null,
        deadLetterPending: false,
      });
      expect(await records.countOpen()).toBe(0);
      const { lease } = await mustClaim(queue);
      expect(lease).toMatchObject({ attempt: 1, epoch: 3 });
      await queue.deadLetter(lease, failure);
      await projector().projectPending();
      expect(await records.find('parcels', 'd')).toMatchObject({ replays: 1, epoch: 3, replayedAt: null });
    });

    it('is not undone by a projector that read the job before it', async () => {
      const stale = await dead('d');
      await projector().replay(stale._id.toHexString());
      await projector().project(stale);
      expect(await records.countOpen()).toBe(0);
      expect(await queue.find(stale._id.toHexString())).toMatchObject({ phase: 'ready' });
    });

    it('is not undone by a late projector of the stay before, whose flag would pass for the new one', async () => {
      const first = await dead('d');
      const id = first._id.toHexString();
      await projector().replay(id);
      const { lease } = await mustClaim(queue);
      await queue.deadLetter(lease, failure);
      await queue.markProjected(first);
      expect(await queue.find(id)).toMatchObject({ deadLetterPending: true });
      await projector().projectPending();
      expect(await records.find('parcels', 'd')).toMatchObject({ epoch: 3, replayedAt: null });
    });

    it('that crashes before the record is closed is finished by the next pass', async () => {
      const job = await dead('d');
      await projector().projectPending();
      await queue.replay(job._id.toHexString());
      expect(await records.countOpen()).toBe(1);
      await mustClaim(queue);
      expect(await projector().projectPending()).toBe(1);
      expect(await records.countOpen()).toBe(0);
      expect((await records.find('parcels', 'd'))?.replayedAt).toBeInstanceOf(Date);
    });
  });

  it('of two pipelines with one request id stay apart', async () => {
    const other = await parcelQueue(database.connection, 'Other');
    await other.enqueue({ key: 'd', payload: { label: 'other' } });
    const { lease } = await mustClaim(other);
    await other.deadLetter(lease, failure);
    await dead('d');
    await parcelProjector(other, records, 'others').projectPending();
    await projector().projectPending();
    expect(await records.countOpen()).toBe(2);
  });
});
