import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { EventQueue } from '../../../src/ingestion/event-queue';
import { CONTRACT_A, makeEvents } from '../../support/ingestion-chain';
import { queueDirectory } from '../../support/ingestion-fixture';

const COUNT = 600;
const FEW = 80;
const directory = queueDirectory();
const children: ChildProcess[] = [];
const script = path.join(__dirname, '../../support/ingestion-child.ts');
const ids = makeEvents(COUNT, { perLedger: 20 }).map(({ id }) => id);

function run(file: string, count: number, deadly = 'none'): ChildProcess {
  const child = spawn(
    process.execPath,
    ['--require', 'tsx/cjs', script, file, `${file}-effects`, String(count), deadly],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  children.push(child);
  return child;
}

/** Kills the child once it has told of `stored` events or more. */
function killAt(child: ChildProcess, stored: number): void {
  child.stdout!.on('data', (chunk: Buffer) => {
    const told = chunk.toString().trim().split('\n').map(Number);
    if (told.some((total) => total >= stored)) child.kill('SIGKILL');
  });
}

function effectsOf(file: string, handler: string): string[] {
  const effects = `${file}-effects-${handler}`;
  return existsSync(effects) ? readFileSync(effects, 'utf8').trim().split('\n') : [];
}

/** Everything up to the stored cursor is in the file. */
function expectCursorBehindStorage(file: string): void {
  const queue = new EventQueue(file, 3);
  try {
    const cursor = queue.store.positions().get(CONTRACT_A)?.cursor;
    const stored = new Set(queue.store.readAfter(0, COUNT + 1).map(({ event }) => event.id));
    expect(stored.size).toBe(queue.getStats().total);
    for (const id of ids) if (cursor !== undefined && id <= cursor) expect(stored).toContain(id);
  } finally {
    queue.close();
  }
}

afterAll(() => {
  for (const child of children) child.kill('SIGKILL');
  directory.remove();
});

it('kill -9 at any moment loses no event, stores none twice, and leaves the cursor behind what is stored', async () => {
  const file = directory.file('killed.db');
  for (const stored of [1, 200, 400]) {
    const child = run(file, COUNT);
    killAt(child, stored);
    expect(await once(child, 'exit')).toEqual([null, 'SIGKILL']);
    expectCursorBehindStorage(file);
  }
  expect(await once(run(file, COUNT), 'exit')).toEqual([0, null]);
  for (const handler of ['one', 'two']) expect([...new Set(effectsOf(file, handler))].sort()).toEqual(ids);
  const queue = new EventQueue(file, 3);
  expect(queue.getStats()).toMatchObject({ total: COUNT, processed: COUNT, failed: 0, pending: 0 });
  queue.close();
});

it('an event that kills its process each time is given up, and everything else is handled', async () => {
  const file = directory.file('deadly.db');
  const deadly = ids[40]!;
  const ends: unknown[] = [];
  while (ends.length < 7 && ends.at(-1) !== 0) ends.push((await once(run(file, FEW, deadly), 'exit'))[0]);
  expect(ends).toEqual([null, null, null, null, null, 0]);
  const queue = new EventQueue(file, 3);
  expect(queue.deadLetters.list({}, { limit: 10 })).toMatchObject([
    { eventId: deadly, handler: 'one', code: 'HANDLER_DIED', attempts: 5 },
  ]);
  expect(queue.getStats()).toMatchObject({ processed: FEW - 1, failed: 1 });
  queue.close();
  expect(new Set(effectsOf(file, 'two')).size).toBe(FEW);
  expect(new Set(effectsOf(file, 'one')).size).toBe(FEW - 1);
});
