import Database from 'better-sqlite3';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { EventQueue } from '../../../src/ingestion/event-queue';
import type { RawEvent } from '../../../src/ingestion/event-source';
import { PermanentError } from '../../../src/platform/errors';
import { captureLogger } from '../../support/capture-logger';
import { CONTRACT_A, makeEvent, makeEvents } from '../../support/ingestion-chain';
import { ManualClock, queueDirectory } from '../../support/ingestion-fixture';

const directory = queueDirectory();
const open: EventQueue[] = [];
let files = 0;

function makeQueue(
  options: ConstructorParameters<typeof EventQueue>[2] = {},
  file = directory.file(`q${(files += 1)}.db`),
) {
  const queue = new EventQueue(file, 3, { retryDelayMs: 0, ...options });
  open.push(queue);
  return queue;
}
const [first, second, third] = makeEvents(3) as [RawEvent, RawEvent, RawEvent];

afterEach(() => open.splice(0).forEach((queue) => queue.close()));
afterAll(() => directory.remove());

describe('enqueue and dequeue', () => {
  it('stores an event before anyone handles it, and hands it out once', () => {
    const queue = makeQueue();
    expect(queue.enqueue(first)).toBe(true);
    expect(queue.getStats()).toMatchObject({ total: 1, pending: 1, processing: 0 });
    expect(queue.dequeue()).toMatchObject({
      id: first.id,
      eventData: first,
      status: 'processing',
      attempts: 1,
    });
    expect(queue.getStats()).toMatchObject({ total: 1, pending: 0, processing: 1 });
    expect(queue.dequeue()).toBeNull();
  });

  it('counts a duplicate as success and stores it once, whatever became of the first', () => {
    const queue = makeQueue();
    queue.enqueue(first);
    expect(queue.enqueue(first)).toBe(true);
    queue.markProcessed(queue.dequeue()!.id);
    expect(queue.enqueue(first)).toBe(true);
    expect(queue.getStats()).toMatchObject({ total: 1, processed: 1 });
    expect(queue.dequeue()).toBeNull();
  });

  it('hands out in the order of storing', () => {
    const queue = makeQueue();
    for (const event of [second, first, third]) queue.enqueue(event);
    expect([queue.dequeue()?.id, queue.dequeue()?.id, queue.dequeue()?.id]).toEqual([
      second.id,
      first.id,
      third.id,
    ]);
  });

  it('stores a batch and the cursor behind it together', () => {
    const queue = makeQueue();
    const page = {
      events: [first, second, first],
      contractIds: [CONTRACT_A],
      position: { cursor: second.id },
    };
    expect(queue.enqueueBatch(page)).toEqual({
      kind: 'stored',
      inserted: 2,
      duplicates: 1,
      contradictions: 0,
    });
    expect(queue.store.positions().get(CONTRACT_A)).toEqual({ cursor: second.id });
  });
});

describe('results', () => {
  it('tries again until the tries are spent, then keeps the event as failed', () => {
    const queue = makeQueue();
    queue.enqueue(first);
    for (const attempt of [1, 2]) {
      expect(queue.dequeue()?.attempts).toBe(attempt);
      queue.markFailed(first.id, new Error(`no ${attempt}`));
      expect(queue.getStats()).toMatchObject({ pending: 1, retrying: 1, failed: 0 });
    }
    expect(queue.dequeue()?.attempts).toBe(3);
    queue.markFailed(first.id, new Error('no 3'));
    expect(queue.getStats()).toMatchObject({ pending: 0, failed: 1 });
    expect(queue.dequeue()).toBeNull();
    const row = new Database(queue.path, { readonly: true })
      .prepare(`SELECT id, error, attempts FROM events WHERE status = 'failed'`)
      .get();
    expect(row).toEqual({ id: first.id, error: 'no 3', attempts: 3 });
  });

  it('waits longer after each failure', () => {
    const clock = new ManualClock();
    const queue = makeQueue({ clock, retryDelayMs: 1_000, leaseMs: 1e9 });
    queue.enqueue(first);
    for (const delayMs of [2_000, 4_000]) {
      queue.markFailed(queue.dequeue()!.id, new Error('no'));
      clock.advance(delayMs - 1);
      expect(queue.dequeue()).toBeNull();
      clock.advance(1);
    }
    expect(queue.dequeue()?.attempts).toBe(3);
  });

  it('refuses the result of a holder whose lease has passed to another', () => {
    const clock = new ManualClock();
    const file = directory.file('lost.db');
    const slow = makeQueue({ clock, leaseMs: 1_000 }, file);
    const quick = makeQueue({ clock, leaseMs: 1_000 }, file);
    slow.enqueue(first);
    slow.dequeue();
    clock.advance(1_000);
    expect(quick.recoverPending()).toBe(1);
    expect(quick.dequeue()?.attempts).toBe(2);
    expect(slow.markProcessed(first.id)).toBe(false);
    expect(quick.getStats().processing).toBe(1);
    expect(quick.markProcessed(first.id)).toBe(true);
  });

  it('gives up an event whose every holder died', () => {
    const clock = new ManualClock();
    const queue = makeQueue({ clock, leaseMs: 1_000 });
    queue.enqueue(first);
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      expect(queue.dequeue()?.attempts).toBe(attempt);
      clock.advance(1_000);
      expect(queue.recoverPending()).toBe(1);
    }
    expect(queue.dequeue()).toBeNull();
    expect(queue.getStats()).toMatchObject({ failed: 1, pending: 0 });
    expect(queue.deadLetters.list({}, { limit: 10 })[0]).toMatchObject({ code: 'HANDLER_DIED', attempts: 3 });
  });
});

describe('recovery', () => {
  it('finds pending, failed-with-tries-left and interrupted events after reopening, and no processed ones', () => {
    const file = directory.file('reopened.db');
    const before = makeQueue({}, file);
    for (const event of [first, second, third]) before.enqueue(event);
    before.markProcessed(before.dequeue()!.id);
    before.markFailed(before.dequeue()!.id, new Error('once'));
    expect(before.dequeue()?.id).toBe(second.id);
    before.close();

    const after = makeQueue({}, file);
    after.recoverPending();
    const left = [after.dequeue()?.id, after.dequeue()?.id, after.dequeue()];
    expect(left).toEqual([second.id, third.id, null]);
  });

  it('never gives one event to two queues on one file', () => {
    const file = directory.file('shared.db');
    const queues = [makeQueue({}, file), makeQueue({}, file)];
    const events = makeEvents(200);
    queues[0]!.enqueueBatch({ events, contractIds: [], position: null });
    const taken = events.map((_, n) => queues[n % 2]!.dequeue()?.id);
    expect(new Set(taken).size).toBe(200);
    expect(taken).not.toContain(undefined);
  });

  it('refuses to be emptied by dequeue and by handlers alike', () => {
    const file = directory.file('mixed.db');
    const direct = makeQueue({}, file);
    const routed = makeQueue({ consumers: 'handlers' }, file);
    direct.enqueue(first);
    const { from, rows } = routed.deliveries.unrouted(10);
    routed.deliveries.route(
      from,
      rows.map(({ seq, contract }) => ({ kind: 'deliver', seq, contract, to: [] })),
    );
    direct.enqueue(second);
    expect(() => direct.dequeue()).toThrow(PermanentError);
  });
});

describe('statistics and housekeeping', () => {
  it('counts the age of open events only', () => {
    const clock = new ManualClock();
    const queue = makeQueue({ clock, leaseMs: 1e9 });
    queue.enqueue(first);
    clock.advance(1_000);
    queue.enqueue(second);
    clock.advance(500);
    expect(queue.getStats().oldestEventAge).toBe(1_500);
    queue.markProcessed(queue.dequeue()!.id);
    expect(queue.getStats().oldestEventAge).toBe(500);
    queue.markProcessed(queue.dequeue()!.id);
    expect(queue.getStats()).toMatchObject({ oldestEventAge: 0, processed: 2, total: 2 });
  });

  it('cleans processed events past their age and keeps failed ones', () => {
    const clock = new ManualClock();
    const queue = makeQueue({ clock, leaseMs: 1e9 });
    for (const event of [first, second, third]) queue.enqueue(event);
    queue.markProcessed(queue.dequeue()!.id);
    for (let n = 0; n < 3; n += 1) {
      queue.dequeue();
      queue.markFailed(second.id, new Error('no'));
    }
    clock.advance(10_000);
    expect(queue.cleanup(10_001)).toBe(0);
    expect(queue.cleanup(10_000)).toBe(1);
    expect(queue.getStats()).toMatchObject({ processed: 0, failed: 1 });
  });

  it('compresses old rows to less than half and reads them back as they were', () => {
    const clock = new ManualClock();
    const queue = makeQueue({ clock, leaseMs: 1e9 });
    const events = makeEvents(50);
    queue.enqueueBatch({ events, contractIds: [], position: null });
    for (let taken = queue.dequeue(); taken !== null; taken = queue.dequeue()) queue.markProcessed(taken.id);
    const size = () =>
      new Database(queue.path, { readonly: true })
        .prepare('SELECT sum(length(eventData)) FROM events')
        .pluck()
        .get() as number;
    const before = size();
    clock.advance(1_000);
    expect(queue.maintenance.compress(1_000)).toBe(50);
    expect(queue.maintenance.compress(1_000)).toBe(0);
    expect(size()).toBeLessThan(before / 2);
    expect(queue.store.readAfter(0, 100).map(({ event }) => event)).toEqual(events);
    clock.advance(1_000);
    expect(queue.cleanup(2_000)).toBe(50);
  });

  it('replays a dead letter once, with all its tries and a note of who asked for it', () => {
    const queue = makeQueue();
    queue.enqueue(first);
    for (let n = 0; n < 3; n += 1) queue.markFailed(queue.dequeue()!.id, new Error('no'));
    expect(queue.deadLetters.count({})).toBe(1);
    const by = { operator: 'ada', reason: 'fixed' };
    expect(queue.deadLetters.replay({ eventIds: [first.id] }, by)).toBe(1);
    expect(queue.deadLetters.replay({ eventIds: [first.id] }, by)).toBe(0);
    expect(queue.getStats()).toMatchObject({ failed: 0, pending: 1 });
    expect(queue.dequeue()).toMatchObject({ id: first.id, attempts: 1 });
    queue.markProcessed(first.id);
    expect(queue.getStats()).toMatchObject({ processed: 1, pending: 0 });
  });
});

describe('the file', () => {
  it('is readable by its owner only, side files included', () => {
    const queue = makeQueue();
    queue.enqueue(first);
    for (const suffix of ['', '-wal', '-shm']) expect(statSync(queue.path + suffix).mode & 0o777).toBe(0o600);
  });

  it('is deleted with its side files', () => {
    const queue = makeQueue();
    queue.enqueue(first);
    queue.deleteQueue();
    for (const suffix of ['', '-wal', '-shm']) expect(existsSync(queue.path + suffix)).toBe(false);
  });

  it.each(['has only its header left', 'has a damaged page'])(
    'is set aside by a logged name when it %s',
    (damage) => {
      const file = directory.file(`damaged-${damage.length}.db`);
      const before = makeQueue({}, file);
      before.enqueueBatch({ events: makeEvents(500), contractIds: [], position: null });
      before.close();
      const bytes = readFileSync(file);
      if (damage === 'has only its header left') writeFileSync(file, bytes.fill(0xab, 16));
      else writeFileSync(file, bytes.fill(0xab, 8192, bytes.length - 4096));

      const log = captureLogger();
      const after = makeQueue({ logger: log.logger }, file);
      expect(after.setAside).toMatch(/\.corrupt-/);
      expect(existsSync(after.setAside!)).toBe(true);
      expect(log.text()).toContain(path.basename(after.setAside!));
      expect(after.getStats().total).toBe(0);
      expect(after.enqueue(first)).toBe(true);
      expect(readdirSync(path.dirname(file))).toContain(path.basename(after.setAside!));
    },
  );

  it('says false when there is no room, stores nothing of the page, and takes it once there is', () => {
    const log = captureLogger();
    const clock = new ManualClock();
    const queue = makeQueue({ maxFileBytes: 400 * 1024, logger: log.logger, clock, leaseMs: 1e9 });
    const events = makeEvents(2_000);
    const stored: RawEvent[] = [];
    for (const event of events) {
      if (!queue.enqueue(event)) break;
      stored.push(event);
    }
    expect(stored.length).toBeGreaterThan(50);
    expect(stored.length).toBeLessThan(2_000);
    const page = {
      events: events.slice(-100),
      contractIds: [CONTRACT_A],
      position: { cursor: events.at(-1)!.id },
    };
    expect(queue.enqueueBatch(page)).toEqual({ kind: 'full', reason: 'file_limit' });
    expect(queue.store.positions().size).toBe(0);
    expect(log.text()).toContain('the event queue is full');

    for (let taken = queue.dequeue(); taken !== null; taken = queue.dequeue()) queue.markProcessed(taken.id);
    expect(queue.getStats().processed).toBe(stored.length);
    expect(queue.makeRoom()).toBeGreaterThan(0);
    expect(queue.enqueueBatch(page).kind).toBe('stored');
    expect(queue.store.positions().get(CONTRACT_A)).toEqual({ cursor: events.at(-1)!.id });
  });

  it('throws, rather than looking empty, when it can no longer be read', () => {
    const queue = makeQueue();
    queue.enqueue(makeEvent({ ledger: 1 }));
    queue.close();
    expect(() => queue.getStats()).toThrow();
    expect(() => queue.enqueue(first)).toThrow();
  });
});
