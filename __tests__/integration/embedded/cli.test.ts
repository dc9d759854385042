import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { MongoClient } from 'mongodb';
import { startEmbeddedServer } from '../../../src/embedded';

const children: ChildProcess[] = [];

function start(...args: string[]): ChildProcess {
  const child = spawn(process.execPath, ['--import', 'tsx', 'src/embedded/cli.ts', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  children.push(child);
  return child;
}

async function firstMatch(stream: NodeJS.ReadableStream | null, pattern: RegExp): Promise<string> {
  let text = '';
  for await (const chunk of stream ?? []) {
    text += String(chunk);
    const found = pattern.exec(text);
    if (found) return found[1] ?? found[0];
  }
  throw new Error(`the output ended without ${String(pattern)}: ${text}`);
}

afterAll(() => {
  for (const child of children) child.kill('SIGKILL');
});

describe('the command', () => {
  it('prints where it listens and that it keeps nothing, serves other processes, and ends on SIGTERM', async () => {
    const child = start('--port', '0');
    const [uri, warning] = await Promise.all([
      firstMatch(child.stdout, /MONGODB_URI=(\S+)\n/),
      firstMatch(child.stderr, /nothing on disk.*for tests and trial/),
    ]);
    expect(warning).toBeTruthy();
    expect(new URL(uri).pathname).toBe('/sorolane');
    const client = await new MongoClient(uri).connect();
    await client.db('cli').collection('things').insertOne({ n: 1 });
    expect(await client.db('cli').collection('things').countDocuments({ n: 1 })).toBe(1);
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    await expect(exited).resolves.toEqual([0, null]);
    await client.close();
  });

  it('says so when the port is taken', async () => {
    const server = await startEmbeddedServer();
    const child = start('--port', String(server.port));
    const [message, [code]] = await Promise.all([
      firstMatch(child.stderr, /Port \d+ is in use/),
      once(child, 'exit') as Promise<[number]>,
    ]);
    expect([message, code]).toEqual([`Port ${server.port} is in use`, 1]);
    await server.close();
  });

  it('says so when the port is no port', async () => {
    const child = start('--port', 'x');
    const [, [code]] = await Promise.all([
      firstMatch(child.stderr, /a number from 0 to 65535/),
      once(child, 'exit') as Promise<[number]>,
    ]);
    expect(code).toBe(1);
  });
});
