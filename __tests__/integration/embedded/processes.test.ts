import type { ChildProcess } from 'node:child_process';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { MongoClient } from 'mongodb';
import type { EmbeddedServer } from '../../../src/embedded';
import { startEmbeddedServer } from '../../../src/embedded';
import type { Tally } from '../../support/embedded-contender';

const PROCESSES = 4;
const CLIENTS_EACH = 4;
const JOBS = 300;
const KEYS = 40;

const children: ChildProcess[] = [];
let server: EmbeddedServer;
let client: MongoClient;

beforeAll(async () => {
  server = await startEmbeddedServer();
  client = await new MongoClient(server.uri).connect();
});

afterAll(async () => {
  for (const child of children) child.kill('SIGKILL');
  await client.close();
  await server.close();
});

async function messageFrom(child: ChildProcess): Promise<unknown> {
  const exited = once(child, 'exit').then(([code]) => {
    throw new Error(`a process ended with ${String(code)}`);
  });
  const [message] = (await Promise.race([once(child, 'message'), exited])) as [unknown];
  exited.catch(() => undefined);
  return message;
}

it('16 clients of 4 processes claim, insert and upsert each thing once', async () => {
  const db = client.db('contest');
  const jobs = db.collection<{ _id: number; status: string }>('jobs');
  await jobs.insertMany(Array.from({ length: JOBS }, (_, _id) => ({ _id, status: 'ready' })));
  await jobs.createIndex({ status: 1, _id: 1 });
  await db.collection('unique').createIndex({ key: 1 }, { unique: true }, {});

  const file = join(__dirname, '../../support/embedded-contender.ts');
  const settings = [server.uri, String(CLIENTS_EACH), String(KEYS)];
  for (let i = 0; i < PROCESSES; i++) {
    children.push(fork(file, settings, { execArgv: ['--import', 'tsx'], env: { PATH: process.env.PATH } }));
  }
  await Promise.all(children.map(messageFrom));
  const reports = children.map(messageFrom);
  for (const child of children) child.send('go');
  const tallies = (await Promise.all(reports)) as Tally[];
  const sum = (of: (tally: Tally) => number): number => tallies.reduce((total, each) => total + of(each), 0);

  const claimed = tallies.flatMap((tally) => tally.claimed);
  expect(claimed.toSorted((a, b) => a - b)).toEqual(Array.from({ length: JOBS }, (_, i) => i));
  expect(await jobs.countDocuments({ status: 'claimed' })).toBe(JOBS);
  expect(tallies.filter((tally) => tally.claimed.length > 0).length).toBeGreaterThan(1);

  expect(sum(({ inserted }) => inserted)).toBe(KEYS);
  expect(sum(({ refused }) => refused)).toBe(KEYS * (PROCESSES * CLIENTS_EACH - 1));
  expect(await db.collection('unique').countDocuments()).toBe(KEYS);

  expect(sum(({ upserted }) => upserted)).toBe(KEYS);
  const counters = await db.collection<{ n: number }>('counters').find().toArray();
  expect(counters.map(({ n }) => n)).toEqual(Array.from({ length: KEYS }, () => PROCESSES * CLIENTS_EACH));
}, 60_000);
