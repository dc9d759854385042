import Database from 'better-sqlite3';
import { eventsCommand } from '../../../src/cli/events';
import { EventQueue } from '../../../src/ingestion/event-queue';
import { CONTRACT_A, makeEvents } from '../../support/ingestion-chain';
import { queueDirectory } from '../../support/ingestion-fixture';

const directory = queueDirectory();
const file = directory.file();
const by = ['--operator', 'ada', '--reason', 'fixed'];

interface Run {
  exitCode: number | string | undefined;
  out: string;
  err: string;
}

/** Runs the command in this process, as `sorolane events …` does. */
async function run(...args: string[]): Promise<Run> {
  const texts = { out: '', err: '' };
  const capture = (name: 'out' | 'err') => (chunk: string | Uint8Array) => {
    texts[name] += chunk.toString();
    return true;
  };
  const out = jest.spyOn(process.stdout, 'write').mockImplementation(capture('out'));
  const err = jest.spyOn(process.stderr, 'write').mockImplementation(capture('err'));
  const command = eventsCommand().exitOverride();
  for (const sub of command.commands) sub.exitOverride();
  let exitCode: number | string | undefined;
  try {
    await command.parseAsync(['node', 'events', ...args]);
    exitCode = process.exitCode ?? 0;
  } catch (error) {
    exitCode = (error as { exitCode?: number }).exitCode;
  } finally {
    process.exitCode = undefined;
    out.mockRestore();
    err.mockRestore();
  }
  return { exitCode, ...texts };
}
const json = async (...args: string[]) => {
  const { exitCode, out } = await run(...args, '--file', file, '--json');
  return { exitCode, data: JSON.parse(out) as Record<string, unknown> };
};

beforeEach(() => {
  new EventQueue(file).deleteQueue();
  const queue = new EventQueue(file, 1);
  queue.enqueueBatch({
    events: makeEvents(3),
    contractIds: [CONTRACT_A],
    position: { startLedger: 7 },
    tip: { ledger: 106, closedAt: Date.UTC(2026, 0, 1) },
  });
  queue.markFailed(queue.dequeue()!.id, new Error('no such thing'));
  queue.markProcessed(queue.dequeue()!.id);
  queue.store.recordGap({ contractId: CONTRACT_A, fromLedger: 1, toLedger: 6, reason: 'retention' });
  queue.close();
});
afterAll(() => directory.remove());

it('stats tells counts, handlers and positions', async () => {
  expect(await json('stats')).toMatchObject({
    exitCode: 0,
    data: {
      total: 3,
      failed: 1,
      processed: 1,
      gaps: 1,
      handlers: [{ handler: 'direct', dead: 1 }],
      positions: { [CONTRACT_A]: { startLedger: 7 } },
    },
  });
  const { out } = await run('stats', '--file', file);
  expect(out).toContain('direct');
  expect(out).toMatch(/oldestEventAgeMs: \d+/);
  expect(out).toContain('newestLedgerClosedAt: 2026-01-01T00:00:00.000Z');
  expect(out).toMatch(new RegExp(`${CONTRACT_A} .* 7 +100$`, 'm'));
});

it.each(['replay', 'discard'])(
  '%s for a handler that nothing waits for names those that there are',
  async (name) => {
    const mistyped = [name, '--handler', 'dircet', ...by];
    expect(await json(...mistyped)).toEqual({ exitCode: 4, data: { matching: 0, handlers: ['direct'] } });
    expect((await run(...mistyped, '--file', file)).out).toBe(
      'there is nothing for the handler dircet, only for direct\n',
    );
  },
);

it.each([['replya'], ['failed', '--limit', 'x'], ['replay', '--all'], ['stats', '--nonsense']])(
  'what is not understood (%s) points to --help',
  async (...args) => {
    const { exitCode, err } = await run(...args);
    expect(exitCode).toBe(1);
    expect(err).toMatch(/^error: .*[^]*--help/);
  },
);

it('failed tells what, whose, and why', async () => {
  const [first] = makeEvents(1);
  expect((await json('failed')).data).toMatchObject({
    total: 1,
    failed: [
      {
        eventId: first!.id,
        handler: 'direct',
        attempts: 1,
        code: 'UNEXPECTED_ERROR',
        message: 'no such thing',
      },
    ],
  });
});

it('replay previews, then does it, once', async () => {
  expect(await json('replay', '--all', ...by)).toEqual({
    exitCode: 0,
    data: { matching: 1, executed: false },
  });
  expect(await json('replay', '--all', ...by, '--execute')).toMatchObject({
    exitCode: 0,
    data: { replayed: 1 },
  });
  expect(await json('replay', '--all', ...by, '--execute')).toMatchObject({ exitCode: 4 });
  expect((await json('stats')).data).toMatchObject({ failed: 0, pending: 2 });
});

it('replay wants to know what, who and why', async () => {
  expect((await run('replay', ...by)).exitCode).toBe(1);
  expect((await run('replay', '--all', '--handler', 'direct', ...by)).exitCode).toBe(1);
  expect((await run('replay', '--all')).exitCode).toBe(1);
});

describe('discard', () => {
  it('gives up what is owed to a handler, waiting or failed, and what is then settled is no longer open', async () => {
    expect(await json('discard', '--handler', 'direct', ...by)).toEqual({
      exitCode: 0,
      data: { matching: 2, executed: false },
    });
    expect(await json('stats')).toMatchObject({ data: { pending: 1, failed: 1 } });
    expect(await json('discard', '--handler', 'direct', ...by, '--execute')).toEqual({
      exitCode: 0,
      data: { matching: 2, executed: true, discarded: 2 },
    });
    expect(await json('stats')).toMatchObject({
      data: { pending: 0, failed: 0, processed: 3, handlers: [] },
    });
    const again = await json('discard', '--handler', 'direct', ...by, '--execute');
    expect(again).toEqual({ exitCode: 4, data: { matching: 0, handlers: [] } });
    const db = new Database(file, { readonly: true });
    expect(db.prepare('SELECT action, operator, reason FROM audit').all()).toEqual([
      { action: 'discard', operator: 'ada', reason: 'fixed' },
    ]);
    db.close();
  });

  it('keeps to the events named', async () => {
    const [first] = makeEvents(1);
    const ofOne = ['discard', '--handler', 'direct', '--id', first!.id, ...by, '--execute'];
    expect(await json(...ofOne)).toMatchObject({ data: { discarded: 1 } });
    expect(await json('stats')).toMatchObject({ data: { pending: 1, failed: 0 } });
  });

  it('leaves a handler alone that a process is serving', async () => {
    const queue = new EventQueue(file, 1);
    queue.dequeue();
    expect(await json('discard', '--handler', 'direct', ...by, '--execute')).toEqual({
      exitCode: 3,
      data: { matching: 1, inHand: 1, executed: false },
    });
    queue.close();
  });

  it('gives up what could not be read', async () => {
    const queue = new EventQueue(file, 1);
    queue.enqueueBatch({
      events: [],
      malformed: [{ id: 'x', contractId: CONTRACT_A, data: {}, reason: 'no event' }],
      contractIds: [],
      position: null,
    });
    queue.close();
    expect(await json('discard', '--unreadable', ...by, '--execute')).toMatchObject({
      data: { discarded: 1 },
    });
    expect(await json('stats')).toMatchObject({ data: { failed: 1 } });
  });

  it('wants to know of what', async () => {
    expect((await run('discard', ...by, '--file', file)).exitCode).toBe(1);
    expect((await run('discard', '--handler', 'x', '--unreadable', ...by, '--file', file)).exitCode).toBe(1);
  });
});

it('a file that another process has locked is an error that says so', async () => {
  const other = new Database(file);
  other.pragma('locking_mode = EXCLUSIVE');
  other.exec('BEGIN EXCLUSIVE');
  const { exitCode, err } = await run('stats', '--file', file);
  other.exec('ROLLBACK');
  other.close();
  expect(exitCode).toBe(1);
  expect(err).toContain('locked');
});

it('gaps ends with 2 when there are any', async () => {
  expect(await json('gaps')).toMatchObject({
    exitCode: 2,
    data: { gaps: [{ contractId: CONTRACT_A, fromLedger: 1, toLedger: 6 }] },
  });
});

it('cleanup removes processed events only, and only with --execute', async () => {
  expect((await json('cleanup', '--older-than-ms', '0', ...by)).data).toEqual({
    matching: 1,
    executed: false,
  });
  expect((await json('cleanup', '--older-than-ms', '0', ...by, '--execute')).data).toMatchObject({
    removed: 1,
  });
  expect((await json('stats')).data).toMatchObject({ total: 2, failed: 1, processed: 0 });
});

it('a file of something else is an error that names it', async () => {
  const { exitCode, err } = await run('stats', '--file', 'package.json');
  expect(exitCode).toBe(1);
  expect(err).toContain('package.json');
});

it('a missing file is an error, and is not made', async () => {
  const missing = directory.file('missing.db');
  const { exitCode, err } = await run('stats', '--file', missing);
  expect(exitCode).toBe(1);
  expect(err).toContain(missing);
  expect((await run('stats', '--file', missing)).exitCode).toBe(1);
});
