import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import type { DeadLetterRepository } from '../../../src/queue/dead-letters';
import { openTestDatabase, type TestDatabase } from '../../support/database';
import { parcelQueue, parcels } from '../../support/queue-fixture';
import { deadLetterRepository, parcelProjector, until } from '../../support/worker-fixture';

interface Message {
  kind: string;
  key?: string;
  attempt?: number;
  workerId?: string;
}

describe('worker processes', () => {
  let database: TestDatabase;
  let records: DeadLetterRepository;
  const children = new Set<ChildProcess>();

  const spawn = (model: string, leaseMs: number): { child: ChildProcess; messages: Message[] } => {
    const file = path.join(__dirname, '../../support/worker-child.ts');
    const child = fork(file, [database.uri, model, String(leaseMs)], { execArgv: ['--import', 'tsx'] });
    const messages: Message[] = [];
    child.on('message', (message) => messages.push(message as Message));
    children.add(child);
    child.once('exit', () => children.delete(child));
    return { child, messages };
  };

  beforeAll(async () => {
    database = await openTestDatabase();
    records = await deadLetterRepository(database.connection);
  });
  afterAll(async () => {
    await Promise.all(
      [...children].map((child) => {
        const gone = once(child, 'exit');
        child.kill('SIGKILL');
        return gone;
      }),
    );
    await database.close();
  });

  it('are killed by a job no more often than it has attempts; then it is a dead letter', async () => {
    const queue = await parcelQueue(database.connection, 'Killer');
    await queue.enqueue({ key: 'killer', payload: { label: 'kill' }, maxAttempts: 2 });
    for (let death = 1; death <= 2; death++) {
      const { child, messages } = spawn('Killer', 200);
      const [code] = (await once(child, 'exit')) as [number];
      expect(code).toBe(9);
      expect(messages.find(({ kind }) => kind === 'started')?.attempt).toBe(death);
    }
    await until('swept', async () => (await queue.tidy()).swept === 1);
    await parcelProjector(queue, records).projectPending();
    expect(await records.find('parcels', 'killer')).toMatchObject({ reason: 'worker_died', attempts: 2 });
    expect(await queue.claim({ workerId: 'w' as never, lane: 0 })).toEqual({ kind: 'empty' });
  });

  it('complete a job once even if the first holder blocks its event loop beyond the lease', async () => {
    const queue = await parcelQueue(database.connection, 'Blocked', { leaseMs: 200 });
    await queue.enqueue({ key: 'block', payload: { label: 'block' } });
    const { messages } = spawn('Blocked', 200);
    await until('it blocks', () => messages.some(({ kind }) => kind === 'started'));
    let claim = await queue.claim({ workerId: 'rival' as never, lane: 0 });
    while (claim.kind === 'empty') claim = await queue.claim({ workerId: 'rival' as never, lane: 0 });
    expect(await queue.complete(claim.claimed.lease, { note: 'rival' })).toEqual({ kind: 'completed' });
    await until('it notices', () => messages.some(({ kind }) => kind === 'lease_lost'));
    expect(messages.filter(({ kind }) => kind === 'completed')).toEqual([]);
    expect(await queue.findByKey('block')).toMatchObject({ phase: 'done', note: 'rival', attempts: 2 });
  });

  it('stop on SIGTERM by themselves, with the job handed back and the stop on record', async () => {
    const queue = await parcelQueue(database.connection, 'Hanging');
    await queue.enqueue({ key: 'hang', payload: { label: 'hang' } });
    const { child, messages } = spawn('Hanging', 60_000);
    await until('it hangs', () => messages.some(({ kind }) => kind === 'started'));
    child.kill('SIGTERM');
    const [code] = (await once(child, 'exit')) as [number];
    expect(code).toBe(0);
    expect(await parcels(database.connection, 'Hanging').findOne({ key: 'hang' })).toMatchObject({
      phase: 'ready',
      lease: null,
    });
    const workerId = messages.find(({ kind }) => kind === 'ready')?.workerId;
    expect(await database.connection.collection('workerHeartbeats').findOne({ workerId })).toMatchObject({
      status: 'stopped',
    });
  });
});
