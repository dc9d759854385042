import Database from 'better-sqlite3';
import fs, {
  chmodSync,
  copyFileSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { EventQueue } from '../../../src/ingestion/event-queue';
import { PermanentError } from '../../../src/platform/errors';
import { CONTRACT_A, makeEvents } from '../../support/ingestion-chain';
import { queueDirectory } from '../../support/ingestion-fixture';

const directory = queueDirectory();
const queues: EventQueue[] = [];
const open = (...args: ConstructorParameters<typeof EventQueue>): EventQueue => {
  const queue = new EventQueue(...args);
  queues.push(queue);
  return queue;
};

afterEach(() => queues.splice(0).forEach((queue) => queue.close()));
afterAll(() => directory.remove());

it.each([0, 1, 7])('someone else’s database (user_version %d) is refused and left as it was', (version) => {
  const file = directory.file(`foreign-${version}.db`);
  const foreign = new Database(file);
  foreign.exec(`CREATE TABLE invoices (id INTEGER PRIMARY KEY); PRAGMA user_version = ${version}`);
  foreign.close();
  chmodSync(file, 0o644);
  const before = readFileSync(file);
  expect(() => open(file)).toThrow(PermanentError);
  expect(readFileSync(file)).toEqual(before);
  expect(statSync(file).mode & 0o777).toBe(0o644);
});

it('a file of a later release is refused and left as it was', () => {
  const file = directory.file('later.db');
  open(file).close();
  const later = new Database(file);
  later.pragma('user_version = 999');
  later.close();
  expect(() => open(file)).toThrow(expect.objectContaining({ code: 'EVENT_QUEUE_VERSION' }) as Error);
});

it('a file of the first release goes on with all that is in it', () => {
  const file = directory.file('first.db');
  const queue = open(file);
  queue.enqueueBatch({
    events: makeEvents(3),
    contractIds: [CONTRACT_A],
    position: { startLedger: 7 },
  });
  queue.close();
  const older = new Database(file);
  older.exec(
    'ALTER TABLE contracts DROP COLUMN followed; PRAGMA user_version = 1; PRAGMA application_id = 0',
  );
  older.close();
  const later = open(file);
  expect(later.setAside).toBeNull();
  expect(later.getStats().pending).toBe(3);
  expect(later.store.positions().get(CONTRACT_A)).toEqual({ startLedger: 7 });
});

it.each([100, 4_096, 20_000])('a file cut off after %d bytes is set aside', (bytes) => {
  const file = directory.file(`cut-${bytes}.db`);
  const queue = open(file);
  queue.enqueueBatch({ events: makeEvents(500), contractIds: [], position: null });
  queue.close();
  truncateSync(file, bytes);
  expect(open(file).setAside).not.toBeNull();
});

it('a file whose log was lost is as it stood at the last checkpoint, not corrupt', () => {
  const file = directory.file('no-log.db');
  const queue = open(file);
  queue.enqueueBatch({ events: makeEvents(10), contractIds: [], position: null });
  queue.maintenance.shrink();
  queue.enqueueBatch({ events: makeEvents(10, { firstLedger: 900 }), contractIds: [], position: null });
  const copy = directory.file('copy.db');
  copyFileSync(file, copy);
  const reopened = open(copy);
  expect(reopened.setAside).toBeNull();
  expect(reopened.getStats().total).toBe(10);
});

it('one that others could read is closed to them', () => {
  const file = directory.file('open.db');
  writeFileSync(file, '', { mode: 0o666 });
  chmodSync(file, 0o666);
  open(file).enqueueBatch({ events: makeEvents(1), contractIds: [], position: null });
  for (const suffix of ['', '-wal', '-shm']) expect(statSync(file + suffix).mode & 0o777).toBe(0o600);
});

it.each([
  ['a path without its directory', 'no/such/directory.db', 'there is no such directory'],
  ['a directory', '.', 'it is a directory'],
])('%s is refused by name', (_what, name, why) => {
  const file = directory.file(name);
  expect(() => open(file)).toThrow(
    expect.objectContaining({
      code: 'EVENT_QUEUE_PATH',
      message: `no event queue can be kept at ${file} (EVENT_QUEUE_PATH): ${why}`,
    }) as Error,
  );
});

it.each(['{"name": "someone else’s"}', 'SQLite'])(
  'a file that is no database (%s) is left alone',
  (content) => {
    const file = directory.file(`foreign-${content.length}.json`);
    writeFileSync(file, content, { mode: 0o644 });
    const before = readdirSync(path.dirname(file));
    for (const mustExist of [false, true]) {
      expect(() => open(file, 3, { mustExist })).toThrow(
        expect.objectContaining({
          code: 'EVENT_QUEUE_FOREIGN',
          message: expect.stringContaining(file) as string,
        }) as Error,
      );
    }
    expect(readFileSync(file, 'utf8')).toBe(content);
    expect(statSync(file).mode & 0o777).toBe(0o644);
    expect(readdirSync(path.dirname(file))).toEqual(before);
  },
);

describe('a small disk', () => {
  const DISK_BYTES = 3 * 1024 * 1024;
  const sizeOf = (file: string): number => fs.statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  const freeBeside = (file: string): number => DISK_BYTES - sizeOf(file) - sizeOf(`${file}-wal`);

  afterEach(() => jest.restoreAllMocks());

  it('is never filled by the log so far that the log can’t be emptied, and serves on as rows are done', () => {
    const file = directory.file('small.db');
    jest
      .spyOn(fs, 'statfsSync')
      .mockImplementation((() => ({ bavail: Math.max(0, freeBeside(file)), bsize: 1 })) as never);
    const queue = open(file, 3, { minFreeDiskBytes: 0 });
    const events = makeEvents(12_000);
    let stored = 0;
    for (let rounds = 0; stored < events.length && rounds < 1_000; rounds += 1) {
      const page = { events: events.slice(stored, stored + 200), contractIds: [], position: null };
      if (queue.enqueueBatch(page).kind === 'stored') stored += page.events.length;
      else {
        for (let taken = queue.dequeue(); taken !== null; taken = queue.dequeue()) {
          queue.markProcessed(taken.id);
          expect(freeBeside(file)).toBeGreaterThan(0);
        }
        expect(queue.makeRoom()).toBeGreaterThan(0);
      }
      expect(sizeOf(`${file}-wal`)).toBeLessThanOrEqual(freeBeside(file));
    }
    expect(stored).toBe(events.length);
  });
});
